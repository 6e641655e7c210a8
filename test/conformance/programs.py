"""Compiles the programs of this folder. They use only stock UCX and MPI."""
import os
import shlex
import shutil
import subprocess

from cases import HERE

# program: (compiler, extra flags)
PROGRAMS = {
    "mpi_exchange": ("mpicc",),
    "exported_memory": ("cc", "$ucp"),
    "remote_atomics": ("cc", "$ucp"),
}


def build(device):
    """Compiles into the folder of the device. If a compiler is missing, the case that needs the program reports it."""
    for name, (compiler, *extra) in PROGRAMS.items():
        program, source = os.path.join(device.folder, name), os.path.join(HERE, name + ".c")
        if not shutil.which(compiler):
            continue
        newest = max(os.path.getmtime(path) for path in (source, os.path.join(HERE, "stock_ucp.h")))
        if os.path.exists(program) and os.path.getmtime(program) > newest:
            continue
        flags = []
        if extra:
            flags = shlex.split(subprocess.run(["pkg-config", "--cflags", "--libs", "ucx"], check=True,
                                               capture_output=True, text=True).stdout)
        subprocess.run([compiler, "-std=gnu11", "-O2", "-Wall", "-Wextra", "-o", program, source, *flags], check=True)
