# Looks for Open MPI and MPICH. libmpi_layout is built for each one that is there.
#
# The wrapper compilers have the names that Debian gives them, where both can be installed, or the one name that all
# have. What they pass to the compiler is all that is used of them. Its headers are a system's: they are not our style.
AC_DEFUN([UCXL_CHECK_MPI], [
    AC_ARG_ENABLE([mpi], [AS_HELP_STRING([--disable-mpi], [do not build libmpi_layout for MPI programs])], [],
                  [enable_mpi=yes])
    UCXL_FIND_MPI([OPENMPI], [openmpi], [OPEN_MPI])
    UCXL_FIND_MPI([MPICH], [mpich], [MPICH])
    have_mpi=`echo $have_OPENMPI $have_MPICH`
    AM_CONDITIONAL([HAVE_MPI], [test -n "$have_mpi"])
    AS_CASE([$enable_mpi,$have_OPENMPI,$have_MPICH],
            [no,*], [have_mpi="no (--disable-mpi)"],
            [yes,,], [have_mpi="no (missing: libopenmpi-dev or libmpich-dev)"],
            [yes,*,], [have_mpi="$have_mpi (not for MPICH; missing: libmpich-dev)"],
            [yes,,*], [have_mpi="$have_mpi (not for Open MPI; missing: libopenmpi-dev)"])
])

# UCXL_FIND_MPI(VARIABLE, NAME, MACRO OF ITS mpi.h)
AC_DEFUN([UCXL_FIND_MPI], [
    have_$1=
    $1_CPPFLAGS=
    $1_LIBS=
    # A wrapper is for the processor that it runs on.
    AS_IF([test "$enable_mpi,$cross_compiling" = yes,no], [
        for wrapper in mpicc.$2 mpicc; do
            flags=`$wrapper -show 2> /dev/null | tr ' ' '\n' | sed -n 's/^-I/-isystem/p; /^-D/p' | tr '\n' ' '`
            test -n "$flags" || continue
            save_CPPFLAGS=$CPPFLAGS
            CPPFLAGS="$CPPFLAGS $flags"
            AC_MSG_CHECKING([whether $wrapper is for $2])
            AC_PREPROC_IFELSE([AC_LANG_SOURCE([[#define MPICH_SKIP_MPICXX
                                                #include <mpi.h>
                                                #if !defined($3) || MPI_VERSION < 3
                                                #error "another MPI"
                                                #endif]])],
                              [have_$1=$2
                               $1_CPPFLAGS=$flags
                               $1_LIBS=`$wrapper -show | tr ' ' '\n' | grep '^-@<:@Ll@:>@' | tr '\n' ' '`])
            CPPFLAGS=$save_CPPFLAGS
            AC_MSG_RESULT([${have_$1:-no}])
            test -z "$have_$1" || break
        done
    ])
    AC_SUBST([$1_CPPFLAGS])
    AC_SUBST([$1_LIBS])
    AM_CONDITIONAL([HAVE_$1], [test -n "$have_$1"])
])
