"""Tests of ARMCI-MPI, whose strided and scattered transfers are one-sided calls of MPI with derived datatypes. Debian
has the library for both MPIs; its tests are compiled from the source."""
import os

import builds
from machine import Case, Suite

FOLDER = "{sources}/armci-mpi-0.4"
LIBRARY = "/usr/lib/x86_64-linux-gnu/libarmci-{mpi}.a"
OWN = ("accs accs_dla group_split groups igop malloc malloc_group malloc_irreg mutex mutex_rmw mutex_trylock onesided "
       "onesided_shared onesided_shared_dla puts puts_gets puts_gets_dla putv rmw_fadd").split()
OF_MPI = ("dt mpi_accs mpi_indexed_accs mpi_indexed_gets mpi_indexed_puts_gets mpi_subarray_accs win_create "
          "win_model").split()
# Calls of the library that are compared with a model of their own; it takes three quarters of a minute.
WHOLE = "armci-test"
TIMED = ("accs",)  # of the others MPICH 4.2.1 itself waits 5 s now and then


def build(machine, mpi):
    folder = FOLDER.format(sources=machine.sources)
    sources = [f"tests/test_{name}.c" for name in OWN] + [f"tests/mpi/test_{name}.c" for name in OF_MPI]
    sources += [f"tests/contrib/{WHOLE}.c"]
    builds.programs(machine, mpi, "armci", [os.path.join(folder, source) for source in sources], "mpicc",
                    (f"-I{folder}/src", LIBRARY.format(mpi=mpi), "-lm"))


def suites():
    cases = [Case(name, (f"{{bin}}/armci/test_{name}",), is_timed=name in TIMED) for name in OWN + OF_MPI]
    cases += [Case(WHOLE, (f"{{bin}}/armci/{WHOLE}",), is_timed=False)]
    yield Suite("ARMCI-MPI", tuple(cases), needs=(f"{FOLDER}/tests", LIBRARY), package="libarmci-mpi-dev",
                prepare=build)
