"""The table of suites."""
import armci
import boost_mpi
import hdf5
import mpi4py_modules
import own
import petsc_sf
import scalapack
import wheels


def suites(sources):
    return (*own.suites(), *scalapack.suites(), *mpi4py_modules.suites(sources),
            *boost_mpi.suites(), *petsc_sf.suites(), *hdf5.suites(), *armci.suites(), *wheels.suites())


# What the table lacks, and why.
NOT_HERE = (
    ("OSU micro-benchmarks, IMB", "Debian 13 has neither; PyPI was searched by name only"),
)
