# The heap (src/heap) has a copy of jemalloc in it: its static library for shared ones, whose symbols get other names.
# It stands before functions of glibc, and calls these by glibc's own names.
AC_DEFUN([UCXL_CHECK_HEAP], [
    AC_ARG_ENABLE([heap],
                  [AS_HELP_STRING([--disable-heap],
                                  [do not build libucx_layout_heap.so (default: it is built if jemalloc is there)])],
                  [], [enable_heap=auto])
    AC_ARG_VAR([JEMALLOC_PIC], [libjemalloc_pic.a, if the compiler does not find it])
    AC_CHECK_TOOL([OBJCOPY], [objcopy])
    have_heap=yes
    AS_CASE([$enable_heap,$CXXFLAGS],
            [no,*], [have_heap="no (--disable-heap)"],
            [*-fsanitize=*], [have_heap="no (sanitizers have a malloc of their own)"],
            [AC_CHECK_HEADER([jemalloc/jemalloc.h])
             AC_MSG_CHECKING([for libjemalloc_pic.a])
             AS_IF([test -z "$JEMALLOC_PIC"], [JEMALLOC_PIC=`$CXX -print-file-name=libjemalloc_pic.a`])
             AS_IF([test ! -f "$JEMALLOC_PIC"], [JEMALLOC_PIC=])
             AC_MSG_RESULT([${JEMALLOC_PIC:-no}])
             AC_CHECK_FUNC([__libc_memalign])
             AS_IF([test -z "$JEMALLOC_PIC" || test "$ac_cv_header_jemalloc_jemalloc_h" != yes],
                   [have_heap="no (missing: libjemalloc-dev)"],
                   [test -z "$OBJCOPY"], [have_heap="no (missing: objcopy of binutils)"],
                   [test "$ac_cv_func___libc_memalign" != yes], [have_heap="no (the C library is not glibc)"])])
    AS_IF([test "$enable_heap" = yes && test "$have_heap" != yes],
          [AC_MSG_ERROR([libucx_layout_heap.so cannot be built: $have_heap])])
    AM_CONDITIONAL([BUILD_HEAP], [test "$have_heap" = yes])
])
