# Tests need GoogleTest, GoogleMock and RapidCheck; benchmarks need Google Benchmark. If one is missing, configure says
# so and leaves tests and benchmarks out. With --enable-tests a missing library is an error.
AC_DEFUN([UCXL_CHECK_TESTS], [
    AC_ARG_ENABLE([tests],
                  [AS_HELP_STRING([--enable-tests], [fail when a test library is missing (default: no tests then)])],
                  [], [enable_tests=auto])
    have_tests=no
    AS_IF([test "$enable_tests" != no], [
        missing=
        PKG_CHECK_MODULES([GTEST], [gtest >= 1.12 gmock], [], [missing="$missing libgtest-dev libgmock-dev"])
        AC_CHECK_HEADER([rapidcheck.h], [], [missing="$missing librapidcheck-dev"])
        AC_CHECK_HEADER([infiniband/mlx5dv.h], [], [missing="$missing libibverbs-dev"])
        AS_CASE(["$host_cpu,$ZYDIS_LIBS"], [x86_64,], [missing="$missing libzydis-dev"])
        PKG_CHECK_MODULES([BENCHMARK], [benchmark], [], [missing="$missing libbenchmark-dev"])
        AS_IF([test -z "$missing"], [have_tests=yes],
              [test "$enable_tests" = yes], [AC_MSG_ERROR([test libraries are missing:$missing])],
              [have_tests="no, 'make check' does nothing (missing:$missing)"])
    ])
    AM_CONDITIONAL([BUILD_TESTS], [test "$have_tests" = yes])
    # Benchmarks run where they are built, with all that the machine has, and so do their peers on MPI.
    AS_IF([test "$cross_compiling" = yes], [NATIVE_FLAGS= BENCH_PEERS=],
          [NATIVE_FLAGS=-march=native BENCH_PEERS=bench-peers])
    AC_SUBST([NATIVE_FLAGS])
    AC_SUBST([BENCH_PEERS])
])
