"""Tests of parallel HDF5, which describes parts of arrays by datatypes of MPI. Debian has the library for both MPIs;
its tests are compiled from the source, and use functions of the library that only it and they know."""
import os

import builds
from machine import Case, Suite

FOLDER = "{sources}/hdf5-1.14.5+repack"
HEADERS = "/usr/include/hdf5/{mpi}"
LIBRARY = "/usr/lib/x86_64-linux-gnu/libhdf5_{mpi}.so"
COMMON = ("h5test", "testframe")
MAIN = "testphdf5"
PARTS_OF_MAIN = ("t_dset t_file t_file_image t_mdset t_ph5basic t_coll_chunk t_span_tree t_chunk_alloc t_filter_read "
                 "t_prop t_coll_md t_oflush").split()
# Without t_cache, t_cache_image and t_pread, which want more processes, and t_filters_parallel and t_pmulti_dset, which
# take minutes.
ALONE = ("t_mpi", "t_bigio", "t_select_io_dset", "t_shapesame", "t_vfd")
VARIES = (r"\d+\.\d+ *(?:s|seconds|MB/s)\b", r"seed[ =:]+\d+")


def build(machine, mpi):
    folder = FOLDER.format(sources=machine.sources)
    parts = {name: (name,) for name in ALONE} | {MAIN: (MAIN, *PARTS_OF_MAIN)}
    # The authors' configure writes this file.
    with open(os.path.join(folder, "test", "H5srcdir_str.h"), "w", encoding="utf-8") as file:
        file.write(f'#define config_srcdir "{folder}/test"\n')
    builds.once(machine, mpi, "hdf5", lambda into: [
        [f"mpicc.{mpi}", "-O1", "-w", f"-I{HEADERS.format(mpi=mpi)}",
         *(f"-I{folder}/{part}" for part in ("src", "src/H5FDsubfiling", "test", "testpar")),
         "-o", os.path.join(into, name), *(f"{folder}/testpar/{part}.c" for part in parts[name]),
         *(f"{folder}/test/{part}.c" for part in COMMON), LIBRARY.format(mpi=mpi)]
        for name in parts])


def suites():
    cases = [Case(name, (f"{{bin}}/hdf5/{name}",), varies=VARIES, is_timed=name == MAIN, timeout_s=600)
             for name in (MAIN, *ALONE)]
    yield Suite("HDF5", tuple(cases), needs=(f"{FOLDER}/testpar", HEADERS, LIBRARY),
                package="libhdf5-openmpi-dev, libhdf5-mpich-dev", prepare=build)
