# Finds stock UCX with its headers. What is built works with every UCX that src/abi knows, whichever of them it was
# built with. Headers of another one may declare another interface, so configure refuses it.
AC_DEFUN([UCXL_CHECK_UCX], [
    AC_ARG_WITH([ucx],
                [AS_HELP_STRING([--with-ucx=PREFIX], [use the UCX in PREFIX (default: what pkg-config finds)])],
                [], [with_ucx=])
    AS_CASE([$with_ucx],
            ['' | yes], [],
            [no], [AC_MSG_ERROR([ucx-layout is an extension of UCX and cannot do without it])],
            [UCXL_USE_UCX_PREFIX])
    PKG_CHECK_MODULES([UCX], [ucx >= 1.16], [],
        [AC_MSG_ERROR(m4_normalize([UCX >= 1.16 with headers was not found: install libucx-dev (Debian 13), or give its
                                    place with --with-ucx=PREFIX]))])
    UCX_VERSION=`$PKG_CONFIG --modversion ucx`
    AS_CASE([$UCX_VERSION], [1.1@<:@6-9@:>@ | 1.1@<:@6-9@:>@.* | 1.2@<:@0-3@:>@ | 1.2@<:@0-3@:>@.*], [],
        [AC_MSG_ERROR(m4_normalize([UCX $UCX_VERSION: ucx-layout knows the private interface of UCX 1.16 to 1.23 only
                                    (src/abi); use one of them, or give its place with --with-ucx=PREFIX]))])
    UCXL_SAVED_CPPFLAGS=$CPPFLAGS
    CPPFLAGS="$CPPFLAGS $UCX_CFLAGS"
    AC_CHECK_HEADERS([ucp/api/ucp.h uct/api/uct.h ucs/type/class.h ucs/config/parser.h], [],
        [AC_MSG_ERROR([a header of UCX is missing: install the -dev package that belongs to UCX $UCX_VERSION])])
    CPPFLAGS=$UCXL_SAVED_CPPFLAGS
    AC_SUBST([UCX_VERSION])
])

# Puts the pkg-config folder of PREFIX first. A prefix without UCX is an error; no other UCX is used instead.
AC_DEFUN([UCXL_USE_UCX_PREFIX], [
    ucxl_ucx_pc=
    for ucxl_lib in lib lib64 lib/$host_cpu-linux-gnu; do
        AS_IF([test -f "$with_ucx/$ucxl_lib/pkgconfig/ucx.pc"], [ucxl_ucx_pc=$with_ucx/$ucxl_lib/pkgconfig])
    done
    AS_IF([test -z "$ucxl_ucx_pc"], [AC_MSG_ERROR([--with-ucx=$with_ucx: no lib/pkgconfig/ucx.pc in that folder])])
    PKG_CONFIG_PATH=$ucxl_ucx_pc${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
    export PKG_CONFIG_PATH
])
