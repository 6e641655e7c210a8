"""Tests of PETSc's star forests, which move parts of arrays by messages, neighbourhood collectives and windows."""
import os
import shlex
import subprocess

import builds
from machine import OPENMPI, Case, LeftOut, Suite

FOLDER = "{sources}/petsc-3.22.5/src/vec/is/sf/tests"
KINDS = ("basic", "neighbor", "window -sf_window_flavor create -sf_window_sync fence",
         "window -sf_window_flavor allocate -sf_window_sync lock")
PROGRAMS = {"ex1": [f"-sf_type {kind}" for kind in KINDS], "ex2": [f"-sf_type {kind}" for kind in KINDS[:2]],
            "ex4": [""], "ex9": [""], "ex13": [f"-sf_type {kind}" for kind in KINDS[:2]], "ex15": [""]}


def build(machine, mpi):
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "petsc"], capture_output=True, text=True, check=False)
    if flags.returncode != 0:
        raise LeftOut("pkg-config does not know petsc")
    folder = FOLDER.format(sources=machine.sources)
    builds.programs(machine, mpi, "petsc", [os.path.join(folder, f"{name}.c") for name in PROGRAMS], "mpicc",
                    shlex.split(flags.stdout))


def suites():
    cases = [Case(f"{name} {words}".strip(), (f"{{bin}}/petsc/{name}", *words.split()), is_timed=name == "ex1")
             for name, variants in PROGRAMS.items() for words in variants]
    yield Suite("PETSc SF", tuple(cases), mpis=(OPENMPI,), needs=(FOLDER,), package="petsc-dev", prepare=build)
