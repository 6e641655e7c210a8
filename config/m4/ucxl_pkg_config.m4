# Looks for pkg-config first, so that a missing pkg-config is not taken for a missing UCX. Forbids unexpanded macros of
# pkg.m4, so that ./autogen.sh reports a missing pkg.m4 and configure does not end with a shell syntax error.
AC_DEFUN([UCXL_CHECK_PKG_CONFIG], [
    m4_pattern_forbid([^PKG_[A-Z_]+$])
    m4_pattern_allow([^PKG_CONFIG(_PATH|_LIBDIR)?$])
    PKG_PROG_PKG_CONFIG([0.29])
    AS_IF([test -z "$PKG_CONFIG"], [AC_MSG_ERROR([pkg-config was not found: install pkgconf])])
])
