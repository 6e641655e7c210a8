# The warnings that the code must compile without. Flags that a compiler does not know are left out.
AC_DEFUN([UCXL_CHECK_WARNINGS], [
    WARN_FLAGS=
    for flag in -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wold-style-cast -Wcast-qual -Wundef -Wformat=2 \
                -Wimplicit-fallthrough; do
        AS_VAR_PUSHDEF([cache], [ucxl_cv_flag_$flag])
        AC_CACHE_CHECK([whether the compiler knows $flag], [cache], [
            ucxl_saved=$CXXFLAGS
            CXXFLAGS="$CXXFLAGS -Werror $flag"
            AC_COMPILE_IFELSE([AC_LANG_PROGRAM()], [AS_VAR_SET([cache], [yes])], [AS_VAR_SET([cache], [no])])
            CXXFLAGS=$ucxl_saved])
        AS_VAR_IF([cache], [yes], [WARN_FLAGS="$WARN_FLAGS $flag"])
        AS_VAR_POPDEF([cache])
    done
    AC_ARG_ENABLE([werror], [AS_HELP_STRING([--enable-werror], [make compiler warnings errors])],
                  [AS_IF([test "$enableval" = yes], [WARN_FLAGS="$WARN_FLAGS -Werror"])])
    AC_SUBST([WARN_FLAGS])
])
