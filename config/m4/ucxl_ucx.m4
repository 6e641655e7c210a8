# Stock UCX with its headers. Private structures are declared per minor version in src/uct/abi, so an unknown minor is
# refused here with the same words the library uses when it is loaded.
AC_DEFUN([UCXL_CHECK_UCX], [
    PKG_CHECK_MODULES([UCX], [ucx >= 1.18], [],
        [AC_MSG_ERROR([UCX >= 1.18 with headers was not found: install libucx-dev (Debian 13), or set PKG_CONFIG_PATH to its ucx.pc])])
    UCX_VERSION=`$PKG_CONFIG --modversion ucx`
    AS_CASE([$UCX_VERSION], [1.18.*], [],
        [AC_MSG_ERROR([UCX $UCX_VERSION: ucx-layout knows the private interface of UCX 1.18 only (src/uct/abi); use that version])])
    UCXL_SAVED_CPPFLAGS=$CPPFLAGS
    UCXL_SAVED_LIBS=$LIBS
    CPPFLAGS="$CPPFLAGS $UCX_CFLAGS"
    LIBS="$LIBS $UCX_LIBS"
    AC_CHECK_HEADERS([ucp/api/ucp.h uct/api/uct.h ucs/type/class.h ucs/memory/memtype_cache.h], [],
        [AC_MSG_ERROR([a header of UCX is missing: install the -dev package that belongs to UCX $UCX_VERSION])])
    AC_CHECK_FUNCS([uct_component_register uct_tl_register ucs_memtype_cache_update], [],
        [AC_MSG_ERROR([libuct/libucs lack a symbol an out-of-tree component needs; was this UCX built with hidden symbols?])])
    CPPFLAGS=$UCXL_SAVED_CPPFLAGS
    LIBS=$UCXL_SAVED_LIBS
    AC_SUBST([UCX_VERSION])
])
