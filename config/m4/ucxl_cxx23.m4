# C++23 with std::expected: g++ >= 13 or clang++ >= 19 with libstdc++ >= 13.
AC_DEFUN([UCXL_CHECK_CXX23], [
    CXX="$CXX -std=c++23"
    AC_CACHE_CHECK([for C++23 with std::expected], [ucxl_cv_cxx23],
        [AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include <expected>
                                              #include <span>]],
                                            [[std::expected<int, int> e = 1; return e.value_or(0) - 1;]])],
                           [ucxl_cv_cxx23=yes], [ucxl_cv_cxx23=no])])
    AS_IF([test "$ucxl_cv_cxx23" != yes],
          [AC_MSG_ERROR([$CXX cannot compile C++23 with <expected>; install g++ >= 13 and pass CXX=g++-13])])
])
