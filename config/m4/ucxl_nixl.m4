# The backend for NIXL needs NIXL's headers for backends, as NIXL's own build installs them (-Dinstall_headers=true).
AC_DEFUN([UCXL_CHECK_NIXL], [
    AC_ARG_WITH([nixl],
                [AS_HELP_STRING([--with-nixl=PREFIX],
                                [build the backend UCX_LAYOUT for NIXL, whose headers are in PREFIX/include (default:
                                 no)])],
                [], [with_nixl=no])
    NIXL_CPPFLAGS= have_nixl=
    AS_CASE([$with_nixl], [no], [have_nixl="no (--with-nixl=PREFIX)"],
            [yes], [AC_MSG_ERROR([--with-nixl needs a folder: --with-nixl=PREFIX])])
    AS_IF([test -z "$have_nixl"], [
        NIXL_CPPFLAGS="-isystem $with_nixl/include -isystem $with_nixl/include/utils"
        ucxl_saved_cppflags=$CPPFLAGS
        CPPFLAGS="$CPPFLAGS $NIXL_CPPFLAGS"
        AC_MSG_CHECKING([for NIXL's headers for backends])
        AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include "$srcdir/src/nixl/nixl_headers.h"]],
                                           [[static_assert(NIXL_PLUGIN_API_VERSION == 1);]])],
                          [have_nixl="yes ($with_nixl)"],
                          [AC_MSG_ERROR([$with_nixl has no headers of NIXL for backends, or of another version])])
        AC_MSG_RESULT([yes])
        CPPFLAGS=$ucxl_saved_cppflags])
    AC_SUBST([NIXL_CPPFLAGS])
    AM_CONDITIONAL([BUILD_NIXL], [test "$with_nixl" != no])
])
