"""The tests of Boost.MPI, which makes datatypes from C++ classes. The library is compiled from its source, because
Debian has it for one MPI only."""
import glob
import os

import builds
from machine import Case, Suite

FOLDER = "{sources}/boost/libs/mpi"
TESTS = ("all_gather_test", "all_to_all_test", "broadcast_test", "gather_test", "nonblocking_test", "pointer_test",
         "reduce_test", "ring_test", "scan_test", "scatter_test", "sendrecv_test", "skeleton_content_test",
         "wait_any_test")


def build(machine, mpi):
    folder = FOLDER.format(sources=machine.sources)
    flags = ("-O1", "-w", "-fPIC")
    library = builds.once(machine, mpi, "boost_library", lambda into: [
        [f"mpicxx.{mpi}", *flags, "-shared", "-o", f"{into}/libboost_mpi.so", *glob.glob(f"{folder}/src/*.cpp"),
         "-lboost_serialization"]])
    builds.programs(machine, mpi, "boost", [os.path.join(folder, "test", f"{name}.cpp") for name in TESTS], "mpicxx",
                    (*flags, f"-I{folder}/test", f"-L{library}", f"-Wl,-rpath,{library}", "-lboost_mpi",
                     "-lboost_serialization"))


def suites():
    cases = [Case(name, (f"{{bin}}/boost/{name}",), is_timed=name == "skeleton_content_test") for name in TESTS]
    yield Suite("Boost.MPI", tuple(cases), needs=(f"{FOLDER}/test", "/usr/include/boost/mpi.hpp"),
                package="libboost-mpi-dev", prepare=build)
