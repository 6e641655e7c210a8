"""Compiles programs for one MPI, once, in the folder {bin} beside the fetched sources."""
import concurrent.futures
import os
import shutil
import subprocess

from machine import LeftOut


def once(machine, mpi, name, commands_of, newest=0.0):
    """Runs the commands that `commands_of` returns for a folder, unless they have worked since the time `newest`.
    Returns the folder."""
    folder = os.path.join(machine.bin(mpi), name)
    complete = folder + ".complete"
    if os.path.exists(complete) and os.path.getmtime(complete) >= newest:
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    with open(folder + ".log", "wb") as log, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        run = lambda command: subprocess.run(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=False)
        if any(ended.returncode != 0 for ended in pool.map(run, commands_of(folder))):
            raise LeftOut(f"does not compile here, see {folder}.log")
    with open(complete, "wb"):
        return folder


def programs(machine, mpi, name, sources, compiler, flags=()):
    """Compiles each source to a program of its own."""
    return once(machine, mpi, name, lambda folder: [
        [f"{compiler}.{mpi}", "-O2", "-w", "-o", os.path.join(folder, program_of(source)), source, *flags]
        for source in sources], newest=max(map(os.path.getmtime, sources)))


def program_of(source):
    return os.path.basename(source).rsplit(".", 1)[0]
