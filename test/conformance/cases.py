"""The parts of a suite, and how one command is run and judged."""
import dataclasses
import functools
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import threading
import time

UCX_WITH_VERBS = "a UCX with transports for network cards"  # not every distribution's has them
PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
HERE = os.path.dirname(os.path.abspath(__file__))
STOP = threading.Event()  # set it to end what runs


class Interrupted(Exception):
    """STOP is set, so what ran has no result."""


@dataclasses.dataclass
class Result:
    suite: str
    name: str
    outcome: str
    why: str = ""
    seconds: float = 0.0
    log: str = ""


@dataclasses.dataclass(frozen=True)
class Case:
    """One command under softhca-run. If there are `servers`, they are started first, and the command is their client.

    The case passes if the command ends with status 0 in time and prints all patterns of `prints` and none of `refuses`.
    It is skipped if a program that it needs is not installed, or if it printed a pattern of `lacking`: words by which
    the program says that the device lacks a feature. So every skip has a visible reason.
    {port}, {port1}, ... stand for the TCP ports of the servers, {bin} for the folder of the compiled programs.
    """
    name: str
    command: tuple
    servers: tuple = ()  # commands
    options: tuple = ()  # for softhca-run
    env: dict = dataclasses.field(default_factory=dict)
    prints: tuple = ()
    refuses: tuple = ()
    lacking: tuple = ()  # (pattern, reason) pairs
    quick: bool = False
    timeout_s: int = 120  # processor time, see Device.run


@dataclasses.dataclass(frozen=True)
class Suite:
    name: str
    needs: tuple  # programs
    cases: tuple


class Device:
    """Runs commands with the device of one build, and keeps their output in `folder`."""

    def __init__(self, build, folder):
        self.folder = folder
        self.env = dict(os.environ)
        # With the user's settings, results would differ between machines.
        for name in list(self.env):
            if name.startswith(("UCX_", "OMPI_", "PRTE_", "PMIX_", "SOFTHCA_", "IBV_", "MLX5_")):
                del self.env[name]
        install = os.path.join(build, "install")
        self.env["PATH"] = os.pathsep.join((os.path.join(HERE, "bin"), os.path.join(install, "bin"), self.env["PATH"]))
        self.env["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, (os.path.join(install, "lib"),
                                                                   os.environ.get("LD_LIBRARY_PATH"))))

    def log_of(self, suite, name):
        return os.path.join(self.folder, re.sub(r"[^\w.=,+-]+", "_", f"{suite}.{name}") + ".log")

    def which(self, need):
        """The path of a program, or whether UCX is built as UCX_WITH_VERBS says."""
        if need == UCX_WITH_VERBS:
            return "UCX_RC_VERBS_" in self.output_of("ucx_info", "-cf")
        return shutil.which(need, path=self.env["PATH"])

    @functools.cache
    def output_of(self, *command):
        return subprocess.run(command, env=self.env, capture_output=True, text=True, check=False).stdout

    def known_options(self, command):
        """The command without the option of ucx_perftest that only some builds of UCX have and need."""
        if "ucx_perftest" in command and "-P" in command and "-P " not in self.output_of("ucx_perftest", "-h"):
            at = command.index("-P")
            return command[:at] + command[at + 2:]
        return command

    def run(self, command, log, timeout_s, options=(), env=None):
        """Runs the command with the device and returns its status, or None if it did not end in time. Its output goes
        to the file `log`. It is a file because a process that outlives the command would keep a pipe open.

        The command and its children may use `timeout_s` of processor time, and may go as long without using any. The
        limit is not on elapsed time: two processes that poll for each other's messages take a hundred times as long
        while other programs have the processors."""
        with open(log, "wb") as file:
            process = subprocess.Popen(["softhca-run", *options, "--", *command], env={**self.env, **(env or {})},
                                       cwd=self.folder, stdin=subprocess.DEVNULL, stdout=file,
                                       stderr=subprocess.STDOUT, start_new_session=True)
            try:
                return wait(process, timeout_s)
            finally:
                end_group(process)


def wait(process, timeout_s):
    """The status of a process that leads a session, or None if it did not end in time. Throws Interrupted."""
    used, moved = 0.0, time.monotonic()
    while used < timeout_s and time.monotonic() < moved + timeout_s:
        try:
            return process.wait(1.0)
        except subprocess.TimeoutExpired:
            if STOP.is_set():
                raise Interrupted from None
            now = processor_seconds(process.pid)
            if now > used:
                used, moved = now, time.monotonic()
    return None


def processor_seconds(session):
    """Processor time of a session's processes so far, with that of ended children for which their parents waited."""
    ticks = 0
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            # Fields behind the name, which may hold anything: state, parent, group, session, ..., four times in ticks.
            fields = read(f"/proc/{name}/stat").rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session:
            ticks += sum(int(field) for field in fields[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def end_group(process):
    """Ends the processes that a command left behind: first by SIGTERM, so that mpirun can end its own."""
    for signum, patience_s in ((signal.SIGTERM, 3.0), (signal.SIGKILL, 1.0)):
        deadline = time.monotonic() + patience_s
        while time.monotonic() < deadline:
            try:
                os.killpg(process.pid, signum if signum == signal.SIGKILL else signal.SIGTERM)
            except ProcessLookupError:
                process.wait()
                return
            process.poll()
            time.sleep(0.05)  # nothing announces the end of a group whose processes are not ours


def free_ports(number):
    """TCP ports that nobody uses, and none of those that the system gives to clients (from 32768 on by default): one of
    them may belong to a connection of another test a moment later."""
    ports = []
    for port in random.SystemRandom().sample(range(10000, 32768), 100 * number):
        with socket.socket() as probe:
            try:
                probe.bind(("", port))
            except OSError:
                continue
        ports.append(port)
        if len(ports) == number:
            return ports
    raise OSError(f"no {number} free TCP ports")


def read(log):
    with open(log, encoding="utf-8", errors="replace") as file:
        return file.read()


def is_of_signal(status):
    """Whether a process was ended by a signal. softhca-run ends as a shell does: with 128 + N after signal N."""
    return status < 0 or 128 < status <= 128 + signal.SIGRTMAX


def judge(case, status, output):
    """The outcome, and the reason unless the case passed."""
    if status is None:
        return FAILED, f"no end after {case.timeout_s} s"
    if not is_of_signal(status):
        for pattern, reason in case.lacking:
            if re.search(pattern, output):
                return SKIPPED, reason
    if status != 0:
        return FAILED, f"ended with status {status}"
    for pattern in case.prints:
        if not re.search(pattern, output, flags=re.M):
            return FAILED, f"did not print {pattern!r}"
    for pattern in case.refuses:
        found = re.search(pattern, output, flags=re.M)
        if found:
            return FAILED, f"printed {found[0]!r}"
    return PASSED, ""


def run_case(device, suite, case):
    missing = [program for program in suite.needs if not device.which(program)]
    if missing:
        return Result(suite.name, case.name, SKIPPED, f"{', '.join(missing)} is not installed")
    ports = ["port", *(f"port{i}" for i in range(1, len(case.servers)))]
    names = {"bin": device.folder, **dict(zip(ports, free_ports(len(ports))))}
    command = list(device.known_options(case.command))
    if case.servers:
        servers = [word for port, server in zip(ports, case.servers)
                   for word in (f"{{{port}}}", *device.known_options(server), "--")]
        command = [os.path.join(HERE, "together"), *servers, "client", *command]
    command = [word.format(**names) for word in command]
    log = device.log_of(suite.name, case.name)
    begin = time.monotonic()
    status = device.run(command, log, case.timeout_s, case.options, case.env)
    outcome, why = judge(case, status, read(log))
    return Result(suite.name, case.name, outcome, why, time.monotonic() - begin, log)
