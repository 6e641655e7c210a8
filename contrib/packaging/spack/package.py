# Copyright (c) 2026, the ucx-layout authors. ALL RIGHTS RESERVED.
#
# SPDX-License-Identifier: BSD-3-Clause

# The recipe of ucx-layout for Spack 1.0 and newer; docs/install.md says how to use it.
import os

from spack_repo.builtin.build_systems.autotools import AutotoolsPackage

from spack.package import *


class UcxLayout(AutotoolsPackage):
    """Non-contiguous memory as one UCP buffer, an extension of stock UCX."""

    # The release tarball is expected in the folder in which spack is called.
    url = f"file://{os.getcwd()}/ucx-layout-1.0.0.tar.gz"
    manual_download = True

    license("BSD-3-Clause")

    version("1.0.0")

    variant("tools", default=True, description="Build ucx_layout_info, ucx_layout_perftest and ucx_layout_demo")
    variant("softhca", default=True, description="Build layout keys and the software mlx5 device, with rdma-core")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("pkgconfig", type="build")
    # A checkout, as `spack dev-build` uses it, has no configure script.
    depends_on("autoconf@2.71:", type="build")
    depends_on("automake@1.16:", type="build")
    depends_on("libtool", type="build")
    depends_on("m4", type="build")

    depends_on("ucx@1.16:1.23")
    depends_on("cli11@2:", type="build", when="+tools")
    depends_on("fmt@9:", when="+tools")
    depends_on("nlohmann-json@3:", type="build", when="+tools")
    depends_on("rdma-core", when="+softhca")
    depends_on("zydis", when="+softhca target=x86_64:")

    conflicts("+softhca", when="~tools", msg="softhca-run is one of the tools")
    conflicts("%gcc@:12", msg="C++23 with std::expected needs GCC 13")
    conflicts("platform=darwin", msg="ucx-layout needs Linux")

    def configure_args(self):
        # Neither is what the machine happens to have.
        args = ["--disable-tests", "--disable-heap", "--disable-mpi", "--without-python"]
        if self.spec.satisfies("~tools"):
            args.append("--disable-tools")
        if self.spec.satisfies("~softhca"):
            # configure looks for rdma-core by itself: do not let it find that of the system.
            args += ["ac_cv_header_infiniband_verbs_h=no", "ac_cv_header_infiniband_mlx5dv_h=no"]
        return args
