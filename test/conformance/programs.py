"""Compiles the programs of this folder, which use stock UCX and MPI only."""
import os
import shlex
import shutil
import subprocess

from cases import HERE

# program: how it is compiled
PROGRAMS = {
    "mpi_exchange": ("mpicc",),
    "exported_memory": ("cc", "$ucp"),
    "remote_atomics": ("cc", "$ucp"),
}


def build(device):
    """Into the folder of the device; one that cannot be compiled is reported by the case that needs it."""
    for name, (compiler, *extra) in PROGRAMS.items():
        program, source = os.path.join(device.folder, name), os.path.join(HERE, name + ".c")
        if not shutil.which(compiler):
            continue
        if os.path.exists(program) and os.path.getmtime(program) > os.path.getmtime(source):
            continue
        flags = []
        if extra:
            flags = shlex.split(subprocess.run(["pkg-config", "--cflags", "--libs", "ucx"], check=True,
                                               capture_output=True, text=True).stdout)
        subprocess.run([compiler, "-std=gnu11", "-O2", "-Wall", "-Wextra", "-o", program, source, *flags], check=True)
