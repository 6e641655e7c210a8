# Decides which of the parts that need rdma-core are built.
#
# The software device (src/softhca) is below libibverbs and libmlx5. It needs only their headers, because the programs
# that run on it bring the libraries. On x86-64 it uses Zydis to decode the stores that trap.
AC_DEFUN([UCXL_CHECK_VERBS], [
    have_verbs=yes
    AC_CHECK_HEADERS([infiniband/verbs.h infiniband/mlx5dv.h \
                      rdma/ib_user_ioctl_cmds.h rdma/mlx5_user_ioctl_cmds.h], [], [have_verbs=no])
    have_softhca=$have_verbs
    AS_IF([test "$have_verbs" = no],
          [have_softhca="no (missing: libibverbs-dev)"],
          [AS_CASE([$host_cpu], [x86_64 | aarch64], [],
                   [have_verbs=no
                    have_softhca="no (knows the doorbell stores of x86-64 and aarch64 only)"])])
    ZYDIS_LIBS=
    AS_IF([test "$have_verbs,$host_cpu" = yes,x86_64],
          [AC_CHECK_HEADER([Zydis/Zydis.h],
                           [AC_CHECK_LIB([Zydis], [ZydisDecoderDecodeInstruction], [ZYDIS_LIBS=-lZydis])])
           AS_IF([test -z "$ZYDIS_LIBS"], [have_verbs=no
                                           have_softhca="no (missing: libzydis-dev)"])])
    AC_SUBST([ZYDIS_LIBS])
    AM_CONDITIONAL([BUILD_SOFTHCA], [test "$have_verbs" = yes])

    # The layout keys (src/uct/ib/mlx5/layout) call libibverbs and libmlx5.
    AC_CHECK_LIB([mlx5], [mlx5dv_qp_ex_from_ibv_qp_ex], [have_layout_keys=yes], [have_layout_keys=no], [-libverbs])
    AC_CHECK_HEADER([infiniband/mlx5dv.h], [], [have_layout_keys=no])
    AM_CONDITIONAL([BUILD_LAYOUT_KEYS], [test "$have_layout_keys" = yes])
    AS_IF([test "$have_layout_keys" = yes],
          [AC_CONFIG_FILES([ucx-layout-mlx5.pc])],
          [have_layout_keys="no (missing: libibverbs-dev)"])
])
