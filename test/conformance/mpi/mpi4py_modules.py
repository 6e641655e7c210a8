"""The tests of mpi4py, a command for each of its modules. For MPICH, mpi4py is compiled once from its source: Debian
has it for one MPI only."""
import glob
import os

import builds
from machine import MPICH, Case, Suite

VERSION = "4.0.3"
SOURCE = "{sources}/mpi4py-" + VERSION
# Modules that send derived datatypes, and take long enough to be timed.
TIMED = ("test_cco_buf", "test_cco_vec", "test_msgspec", "test_p2p_buf", "test_rma", "test_io", "test_cco_nb_buf")


def modules(sources):
    found = glob.glob(os.path.join(sources, f"mpi4py-{VERSION}", "test", "test_*.py"))
    return sorted(os.path.basename(name).removesuffix(".py") for name in found)


def build(machine, mpi):
    if mpi == MPICH:
        builds.once(machine, mpi, f"mpi4py-{VERSION}", lambda folder: [
            ["env", "-C", SOURCE.format(sources=machine.sources), "python3", "setup.py", "-q", "build",
             f"--build-base={folder}.base", f"--build-lib={folder}", "--mpicc=mpicc.mpich"]])


def suites(sources):
    # The test runner puts this folder in front of the installed mpi4py. For Open MPI there is none of this name.
    command = ("python3", f"{SOURCE}/test/main.py", "--no-builddir", "-v", "--path", "{bin}/mpi4py-" + VERSION, "-i")
    cases = [Case(name, (*command, f"^{name}[.]py$"), passed=r"\.\.\. ok$", is_timed=name in TIMED, timeout_s=60)
             for name in modules(sources)]
    yield Suite("mpi4py", tuple(cases), package="python3-mpi4py", prepare=build,
                needs=(f"{SOURCE}/test/main.py", "/usr/lib/python3/dist-packages/mpi4py"))
