# The command-line tools need CLI11, {fmt} and nlohmann-json. The library itself needs none of them.
AC_DEFUN([UCXL_CHECK_TOOLS], [
    AC_ARG_ENABLE([tools], [AS_HELP_STRING([--disable-tools], [do not build ucx_layout_perftest and ucx_layout_info])],
                  [], [enable_tools=yes])
    have_tools=$enable_tools
    AS_IF([test "$enable_tools" = yes], [
        PKG_CHECK_MODULES([FMT], [fmt >= 9], [],
            [AC_MSG_ERROR([{fmt} is missing (libfmt-dev), or configure with --disable-tools])])
        PKG_CHECK_MODULES([CLI11], [CLI11 >= 2], [],
            [AC_MSG_ERROR([CLI11 is missing (libcli11-dev), or configure with --disable-tools])])
        # Most of CLI11 need not be compiled again in each program, from its version 2.3 on.
        ucxl_save_CPPFLAGS=$CPPFLAGS
        CPPFLAGS="$CPPFLAGS $CLI11_CFLAGS"
        AC_LANG_PUSH([C++])
        AC_CHECK_HEADER([CLI/impl/Argv_inl.hpp], [have_cli11_sources=yes], [have_cli11_sources=no],
                        [[#include <CLI/CLI.hpp>]])
        AC_LANG_POP([C++])
        CPPFLAGS=$ucxl_save_CPPFLAGS
        AS_IF([test "$have_cli11_sources" = yes], [CLI11_CFLAGS="$CLI11_CFLAGS -DCLI11_COMPILE"])
        PKG_CHECK_MODULES([JSON], [nlohmann_json >= 3], [],
            [AC_MSG_ERROR([nlohmann-json is missing (nlohmann-json3-dev), or configure with --disable-tools])])
    ])
    AM_CONDITIONAL([BUILD_TOOLS], [test "$enable_tools" = yes])
    AM_CONDITIONAL([BUILD_CLI11], [test "$have_cli11_sources" = yes])
])
