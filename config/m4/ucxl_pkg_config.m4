# pkg-config first, so that a missing one is not taken for a missing UCX; and its macros, so that a missing pkg.m4 is
# found out by ./autogen.sh and not by a shell syntax error in configure.
AC_DEFUN([UCXL_CHECK_PKG_CONFIG], [
    m4_pattern_forbid([^PKG_[A-Z_]+$])
    m4_pattern_allow([^PKG_CONFIG(_PATH|_LIBDIR)?$])
    PKG_PROG_PKG_CONFIG([0.29])
    AS_IF([test -z "$PKG_CONFIG"], [AC_MSG_ERROR([pkg-config was not found: install pkgconf])])
])
