# Tests want GoogleTest/GoogleMock and RapidCheck, benchmarks Google Benchmark. They are looked for by default and skipped,
# with a note, where they are missing; --enable-tests makes a missing one an error.
AC_DEFUN([UCXL_CHECK_TESTS], [
    AC_ARG_ENABLE([tests], [AS_HELP_STRING([--enable-tests], [fail when a test library is missing (default: skip tests)])],
                  [], [enable_tests=auto])
    missing=
    PKG_CHECK_MODULES([GTEST], [gtest >= 1.12 gmock], [], [missing="$missing libgtest-dev libgmock-dev"])
    AC_CHECK_HEADER([rapidcheck.h], [], [missing="$missing librapidcheck-dev"])
    PKG_CHECK_MODULES([BENCHMARK], [benchmark], [], [missing="$missing libbenchmark-dev"])
    AS_IF([test -n "$missing" && test "$enable_tests" = yes],
          [AC_MSG_ERROR([test libraries are missing:$missing])])
    AS_IF([test -n "$missing" || test "$enable_tests" = no], [have_tests="no (missing:$missing)"], [have_tests=yes])
    AM_CONDITIONAL([BUILD_TESTS], [test "$have_tests" = yes])
])
