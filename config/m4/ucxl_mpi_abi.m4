# Looks for the standard ABI of MPI 5, for which libmpi_layout.so is built: its mpi.h, and libmpi_abi.so.1 of each MPI.
#
# The ABI is the same in all MPIs, so any of their headers will do. They are where the wrappers of the ABI look, where
# Open MPI has it beside its own, or where MPICH has it under another name. The libraries are for tests only: a program
# finds that of its MPI when it starts.
AC_DEFUN([UCXL_CHECK_MPI_ABI], [
    AC_ARG_ENABLE([mpi-abi],
                  [AS_HELP_STRING([--enable-mpi-abi],
                                  [fail when there is no mpi.h of the standard ABI of MPI 5 (default: no
                                   libmpi_layout.so then)])],
                  [], [enable_mpi_abi=auto])
    AC_ARG_VAR([MPI_ABI_CPPFLAGS], [-I of the mpi.h of the standard ABI of MPI 5, if configure does not find it])
    have_mpi_abi=
    AS_CASE([$enable_mpi,$enable_mpi_abi],
            [no,yes], [AC_MSG_ERROR([--enable-mpi-abi and --disable-mpi exclude each other])],
            [no,*], [why_no_mpi_abi="--disable-mpi"],
            [*,no], [why_no_mpi_abi="--disable-mpi-abi"],
            [UCXL_FIND_MPI_ABI_HEADER
             why_no_mpi_abi="missing: libmpich-dev 5 or libopenmpi-dev 6"
             AS_IF([test "$enable_mpi_abi,$have_mpi_abi" = yes,],
                   [AC_MSG_ERROR(m4_normalize([no mpi.h of the standard ABI of MPI 5 was found: install libmpich-dev 5
                                               or libopenmpi-dev 6, or name its folder by MPI_ABI_CPPFLAGS=-I...]))])])
    AS_IF([test -z "$have_mpi_abi"], [MPI_ABI_CPPFLAGS=])
    AM_CONDITIONAL([HAVE_MPI_ABI], [test -n "$have_mpi_abi"])
    UCXL_FIND_MPI_ABI_LIBRARY([OPENMPI], [openmpi])
    UCXL_FIND_MPI_ABI_LIBRARY([MPICH], [mpich])
    mpi_abi_libraries=
    AS_IF([test -n "$OPENMPI_ABI_LIBRARY"], [mpi_abi_libraries="$mpi_abi_libraries openmpi"])
    AS_IF([test -n "$MPICH_ABI_LIBRARY"], [mpi_abi_libraries="$mpi_abi_libraries mpich"])
    AM_CONDITIONAL([HAVE_MPI_ABI_LIBRARY], [test -n "$mpi_abi_libraries"])
    AS_IF([test -z "$have_mpi_abi"], [have_mpi_abi="no ($why_no_mpi_abi)"],
          [test -z "$mpi_abi_libraries"], [have_mpi_abi="yes, without tests (no libmpi_abi.so.1)"],
          [have_mpi_abi="yes, with tests for$mpi_abi_libraries"])
])

AC_DEFUN([UCXL_FIND_MPI_ABI_HEADER], [
    AC_MSG_CHECKING([for mpi.h of the standard ABI of MPI 5])
    flags_of() { "$[@]" -show 2> /dev/null | tr ' ' '\n' | sed -n 's/^-I/-isystem/p; /^-D/p' | tr '\n' ' '; }
    AS_IF([test -n "$MPI_ABI_CPPFLAGS"], [
        given=`AS_ECHO([" $MPI_ABI_CPPFLAGS"]) | sed 's/ -I/ -isystem/g'`
        UCXL_TRY_MPI_ABI([$given])
    ], [test "$cross_compiling" = no], [
        UCXL_TRY_MPI_ABI([`flags_of mpicc_abi`])
        for wrapper in mpicc.openmpi mpicc; do
            for flag in `flags_of $wrapper`; do
                UCXL_TRY_MPI_ABI([$flag/standard_abi])
            done
        done
        for wrapper in mpicc.mpich mpicc; do
            UCXL_TRY_MPI_ABI([`flags_of $wrapper -mpi-abi`])
        done
    ])
    AC_MSG_RESULT([${have_mpi_abi:-no}])
])

# UCXL_TRY_MPI_ABI(FLAGS): takes the flags if these find the header, unless others did before.
AC_DEFUN([UCXL_TRY_MPI_ABI], [
    flags="$1"
    AS_IF([test -n "$flags" && test -z "$have_mpi_abi"], [
        save_CPPFLAGS=$CPPFLAGS
        CPPFLAGS="$CPPFLAGS $flags"
        AC_PREPROC_IFELSE([AC_LANG_SOURCE([[#include <mpi.h>
                                            #if !defined(MPI_ABI_VERSION) || MPI_ABI_VERSION != 1
                                            #error "another ABI"
                                            #endif]])],
                          [have_mpi_abi=yes
                           MPI_ABI_CPPFLAGS=$flags])
        CPPFLAGS=$save_CPPFLAGS
    ])
])

# UCXL_FIND_MPI_ABI_LIBRARY(VARIABLE, NAME): libmpi_abi.so.1 of this MPI. All have the same name for the linker, so
# Debian gives their files other ones.
AC_DEFUN([UCXL_FIND_MPI_ABI_LIBRARY], [
    $1_ABI_LIBRARY=
    AS_IF([test -n "$have_mpi_abi" && test -n "$have_$1"], [
        AC_MSG_CHECKING([for libmpi_abi.so.1 of $2])
        for folder in `AS_ECHO(["$$1_LIBS"]) | tr ' ' '\n' | sed -n 's/^-L//p'`; do
            for file in "$folder/libmpi_abi.so.1" "$folder/libmpi_abi.so" "$folder"/../../libmpi_abi_$2.so.1*; do
                AS_IF([test -z "$$1_ABI_LIBRARY" && test -e "$file"], [$1_ABI_LIBRARY=$file])
            done
        done
        AC_MSG_RESULT([${$1_ABI_LIBRARY:-no}])
    ])
    AC_SUBST([$1_ABI_LIBRARY])
    AM_CONDITIONAL([HAVE_$1_ABI], [test -n "$$1_ABI_LIBRARY"])
])
