# Looks for Open MPI and MPICH. libmpi_layout is built for each one that is there.
#
# The wrapper compilers have the names that Debian gives them, where both can be installed, or the one name that all
# have. What they pass to the compiler is all that is used of them. Its headers are a system's: they are not our style.
AC_DEFUN([UCXL_CHECK_MPI], [
    AC_ARG_ENABLE([mpi], [AS_HELP_STRING([--disable-mpi], [do not build libmpi_layout for MPI programs])], [],
                  [enable_mpi=yes])
    UCXL_FIND_MPI([OPENMPI], [openmpi], [OPEN_MPI])
    UCXL_FIND_MPI([MPICH], [mpich], [MPICH])
    UCXL_CHECK_MPI_ABI
    UCXL_CHECK_OSHMEM
    have_mpi=`echo $have_OPENMPI $have_MPICH`
    AM_CONDITIONAL([HAVE_MPI], [test -n "$have_mpi" || test -n "$MPI_ABI_CPPFLAGS"])
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
                                                #if !defined(OMPI_MAJOR_VERSION)
                                                #define OMPI_MAJOR_VERSION 0
                                                #endif
                                                #if !defined($3) || (MPI_VERSION < 4 && OMPI_MAJOR_VERSION < 5)
                                                #error "another MPI, or one without the calls of MPI 4"
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
    UCXL_FIND_MPI_FORTRAN([$1], [$2])
])

# OpenSHMEM, which is a part of some builds of Open MPI. Only an example needs it.
AC_DEFUN([UCXL_CHECK_OSHMEM], [
    OSHMEM_CPPFLAGS=
    OSHMEM_LIBS=
    AC_MSG_CHECKING([for the OpenSHMEM of Open MPI])
    AS_IF([test -n "$have_OPENMPI" && oshcc --showme:link > /dev/null 2>&1],
          [OSHMEM_CPPFLAGS=`oshcc --showme:compile | tr ' ' '\n' | sed -n 's/^-I/-isystem/p; /^-D/p' | tr '\n' ' '`
           OSHMEM_LIBS=`oshcc --showme:link`])
    AS_IF([test -n "$OSHMEM_LIBS"], [AC_MSG_RESULT([yes])], [AC_MSG_RESULT([no])])
    AC_SUBST([OSHMEM_CPPFLAGS])
    AC_SUBST([OSHMEM_LIBS])
    AM_CONDITIONAL([HAVE_OSHMEM], [test -n "$OSHMEM_LIBS"])
])

# UCXL_FIND_MPI_FORTRAN(VARIABLE, NAME): the command that compiles Fortran programs for this MPI. Only a test needs it.
# The compiler may have a number in its name, which the wrapper does not know.
AC_DEFUN([UCXL_FIND_MPI_FORTRAN], [
    $1_FORTRAN=
    AS_IF([test -n "$have_$1"], [
        AC_MSG_CHECKING([for Fortran with $2])
        AS_MKDIR_P([conftest.fortran])
        AS_ECHO(["      use mpi_f08; call MPI_Init(); end"]) > conftest.fortran/program.f90
        for wrapper in mpifort.$2 mpifort; do
            for compiler in gfortran gfortran-15 gfortran-14 gfortran-13; do
                command="env OMPI_FC=$compiler MPICH_FC=$compiler $wrapper"
                AS_IF([(cd conftest.fortran && $command -o program program.f90) > /dev/null 2>&1],
                      [$1_FORTRAN=$command; break 2])
            done
        done
        rm -rf conftest.fortran
        AC_MSG_RESULT([${$1_FORTRAN:-no}])
    ])
    AC_SUBST([$1_FORTRAN])
    AM_CONDITIONAL([HAVE_$1_FORTRAN], [test -n "$$1_FORTRAN"])
])
