"""Makes a wheel of the package: configure and make build the library and the module, which both go into the wheel.

The sources are those of the checkout or of the release tarball, two folders above; a checkout needs autoconf, automake
and libtool. UCX's headers are needed (UCX_LAYOUT_CONFIGURE passes options, such as --with-ucx=PREFIX), and none of its
libraries gets into the wheel.
"""
import os
import re
import shutil
import subprocess
import sys
import sysconfig

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

TOP = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
IS_STABLE = sys.version_info >= (3, 12) and not any(map(sysconfig.get_config_var, ("Py_GIL_DISABLED", "Py_DEBUG")))
LIBRARY = "libucp_layout.so.1"


def version():
    with open(os.path.join(TOP, "configure.ac"), encoding="utf-8") as file:
        return re.search(r"AC_INIT\(\[ucx-layout\], \[([^\]]*)\]", file.read())[1]


class Build(build_ext):
    """Takes the module from make, and puts the library beside it."""

    def build_extension(self, extension):
        build = self.configured()
        subprocess.check_call(["make", "-j", str(os.cpu_count()), "libucp_layout.la", "_core.la"], cwd=build)
        module = self.get_ext_fullpath(extension.name)
        folder = os.path.dirname(module)
        os.makedirs(folder, exist_ok=True)
        built = os.path.join(build, ".libs")
        suffix = ".abi3.so" if IS_STABLE else sysconfig.get_config_var("EXT_SUFFIX")
        shutil.copy(os.path.join(built, "_core" + suffix), module)
        shutil.copy(os.path.realpath(os.path.join(built, LIBRARY)), os.path.join(folder, LIBRARY))
        subprocess.check_call(["strip", "--strip-unneeded", module, os.path.join(folder, LIBRARY)])

    def configured(self):
        build = os.path.abspath(os.path.join(self.build_temp, "autotools"))
        os.makedirs(build, exist_ok=True)
        if not os.path.exists(os.path.join(TOP, "configure")):
            subprocess.check_call([os.path.join(TOP, "autogen.sh")])
        if not os.path.exists(os.path.join(build, "Makefile")):
            # Nobody can be expected to have the compiler's C++ library, which is newer than that of most machines.
            subprocess.check_call([os.path.join(TOP, "configure"), "--quiet", "--disable-tests", "--disable-tools",
                                   "--disable-mpi", "--disable-heap", f"--with-python={sys.executable}",
                                   "LDFLAGS=-static-libstdc++ -static-libgcc",
                                   *os.environ.get("UCX_LAYOUT_CONFIGURE", "").split()], cwd=build)
            # The module finds the library beside itself, and not where this build has it.
            libtool = os.path.join(build, "libtool")
            with open(libtool, encoding="utf-8") as file:
                text = file.read()
            with open(libtool, "w", encoding="utf-8") as file:
                file.write(re.sub(r"^(hardcode_libdir_flag_spec|runpath_var)=.*", r'\1=""', text, flags=re.M))
        return build


setup(version=version(), packages=["ucx_layout"], package_data={"ucx_layout": ["py.typed", "*.pyi"]},
      ext_modules=[Extension("ucx_layout._core", [], py_limited_api=IS_STABLE)], cmdclass={"build_ext": Build},
      options={"bdist_wheel": {"py_limited_api": "cp312"}} if IS_STABLE else {})
