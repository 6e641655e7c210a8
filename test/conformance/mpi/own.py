"""Programs of this folder, and suites of which Debian has the programs ready."""
import os

import builds
from machine import OPENMPI, Case, Suite

HERE = os.path.dirname(os.path.abspath(__file__))
LAMMPS = "/usr/share/lammps/bench"
# Times, rates, shares of the time, and memory; not the energies and pressures, which have to be the same.
LAMMPS_VARIES = (r"^Loop time of \S+", r"^Performance: .*", r"^\d+\.\d+% CPU use", r"^[A-Z][a-z]+ +\|.*",
                 r"^Total wall time.*", r"CPU *= *\d\S*", r"^ +[\w ]+ took .*", r"^Per MPI rank memory.*",
                 r"\(\d+ chunks?\)|read_data CPU = .*|[a-z ]+ CPU = .*")


def compiled(name, compiler="mpicc", flags=()):
    return lambda machine, mpi: builds.programs(machine, mpi, name, [os.path.join(HERE, name + ".c")], compiler, flags)


def lammps():
    for name, data in (("lj", ""), ("eam", "Cu_u3.eam"), ("chain", "data.chain"), ("chute", "data.chute"),
                       ("rhodo", "data.rhodo")):
        yield Case(name, ("lmp", "-in", f"{LAMMPS}/in.{name}", "-log", "none"), inputs=data and f"{LAMMPS}/{data}",
                   varies=LAMMPS_VARIES)


def suites():
    yield Suite("start and end", (Case("start", ("{bin}/start/start",)),), prepare=compiled("start"))
    yield Suite("LAMMPS", tuple(lammps()), mpis=(OPENMPI,), needs=("lmp", LAMMPS), package="lammps-examples")
    yield Suite("PnetCDF", (Case("blocks", ("{bin}/netcdf_blocks/netcdf_blocks", "blocks.nc")),), mpis=(OPENMPI,),
                needs=("/usr/include/pnetcdf.h",), package="libpnetcdf-dev",
                prepare=compiled("netcdf_blocks", flags=("-lpnetcdf",)))
