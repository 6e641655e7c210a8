# The platform that the code needs: 64-bit Linux, little endian (the wire forms and the mlx5 views assume it).
AC_DEFUN([UCXL_CHECK_PLATFORM], [
    AC_CHECK_SIZEOF([void *])
    AS_IF([test "$ac_cv_sizeof_void_p" != 8],
          [AC_MSG_ERROR([ucx-layout needs a 64-bit target: windows live in a 1 TiB range of reserved addresses])])
    AC_C_BIGENDIAN([AC_MSG_ERROR([ucx-layout supports little-endian targets only])], [], [], [])
    AS_CASE([$host_os], [linux*], [],
            [AC_MSG_ERROR([ucx-layout needs Linux (memfd_create, process address reservation); this is $host_os])])
])
