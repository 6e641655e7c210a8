#!/usr/bin/env python3
"""Runs a command with a time limit. After the limit it prints the command, and for each of its processes the options of
UCX and what the process was doing, with stacks if gdb is installed. Then it ends all processes. The exit status is that
of the command, 124 after the limit, and 128 + N if signal N ended the command.

usage: limited.py SECONDS COMMAND [ARGS]
"""
import os
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import time
import uuid

MARKS_VARIABLE = "UCXL_LIMITED"  # a mark for each limit that a process is under
MARKS = {}  # of the sessions that this process started
OPTIONS = re.compile(r"^(UCX|UCXL|SOFTHCA|LD|GTEST|ASAN|UBSAN|TSAN)_")
GDB_LIMIT_S = 30
TIMED_OUT = 124


def start(command, env=None, **popen):
    """Starts the command in a session of its own, and with a mark in its environment, so that all processes that it
    starts can be found, even those that have another session and whose parent has ended."""
    env, mark = dict(os.environ if env is None else env), uuid.uuid4().hex
    env[MARKS_VARIABLE] = " ".join((*env.get(MARKS_VARIABLE, "").split(), mark))
    process = subprocess.Popen(command, start_new_session=True, env=env, **popen)
    MARKS[process.pid] = mark
    return process


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read().decode(errors="replace")
    except OSError:
        return ""


def has_mark(pid, mark):
    variables = (word.partition("=") for word in words(f"/proc/{pid}/environ"))
    return any(name == MARKS_VARIABLE and mark in value.split() for name, _, value in variables)


def members(session):
    """The processes of a session, and all that they started, even if those are in other sessions now."""
    parents, found, mark = {}, set(), MARKS.get(session)
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        stat = read(f"/proc/{pid}/stat").rpartition(")")[2].split()
        if len(stat) > 3:
            parents[pid] = int(stat[1])
            if int(stat[3]) == session or (mark and has_mark(pid, mark)):
                found.add(pid)
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return sorted(found)


def is_running(pid):
    return read(f"/proc/{pid}/stat").rpartition(")")[2].split()[:1] not in ([], ["Z"], ["X"])


def wait_for_end(pid, seconds):
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        poll.poll(1000 * seconds)
    finally:
        os.close(descriptor)


def left(session, seconds):
    """The processes of a session that still run after so many seconds."""
    deadline = time.monotonic() + seconds
    while (running := [pid for pid in members(session) if is_running(pid)]) and time.monotonic() < deadline:
        wait_for_end(running[0], max(0, deadline - time.monotonic()))
    return running


def end(session):
    ended = set()
    while running := set(members(session)) - ended:  # again: one may have started another in the meantime
        for pid in running:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # it ended by itself in the meantime
        ended |= running


def words(path):
    return [word for word in read(path).split("\0") if word]


def stacks(pid):
    gdb = shutil.which("gdb")
    if not gdb:
        return ["(no stacks: gdb is not installed)"]
    # Debian's libraries have no debug symbols. Looking for them in the network would take minutes.
    command = [gdb, "-nx", "-q", "-batch", "-iex", "set debuginfod enabled off", "-iex", "set sysroot /",
               "-ex", "thread apply all bt 30", "-p", str(pid)]
    try:
        ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                               timeout=GDB_LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        return ["(no stacks: gdb did not end)"]
    lines = [line for line in ended.stdout.splitlines() if line.startswith(("#", "Thread "))]
    return lines or ["(no stacks: " + " ".join(ended.stderr.split()) + ")"]


def describe_process(pid):
    status = dict(line.split(":", 1) for line in read(f"/proc/{pid}/status").splitlines() if ":" in line)
    yield f"process {pid} of {status.get('PPid', '?').strip()}: {shlex.join(words(f'/proc/{pid}/cmdline'))}"
    options = [word for word in words(f"/proc/{pid}/environ")
               if OPTIONS.match(word) and not word.startswith(MARKS_VARIABLE)]
    yield f"  options: {' '.join(options) or '(none)'}"
    for task in sorted(os.listdir(f"/proc/{pid}/task"), key=int):
        folder = f"/proc/{pid}/task/{task}"
        state = read(f"{folder}/stat").rpartition(")")[2].split()[:1]
        yield (f"  thread {task} {read(f'{folder}/comm').strip()}: {' '.join(state)} "
               f"{read(f'{folder}/wchan').strip('0') or '-'}")
    if not status.get("State", "Z").strip().startswith("Z"):
        yield from (f"  {line}" for line in stacks(pid))


def describe(session):
    """What the processes of a session are doing, as text. The processes continue."""
    lines = []
    for pid in members(session):
        try:
            lines.extend(describe_process(pid))
        except OSError:
            lines.append(f"process {pid} ended in the meantime")
    return "\n".join(lines) + "\n"


def main():
    limit_s, command = float(sys.argv[1]), sys.argv[2:]
    process = start(command)
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, lambda number, _frame: (end(process.pid), sys.exit(128 + number)))
    try:
        status = process.wait(limit_s)
    except subprocess.TimeoutExpired:
        print(f"no end after {limit_s:g} s: {shlex.join(command)}\n{describe(process.pid)}", end="", file=sys.stderr)
        end(process.pid)
        process.wait()
        return TIMED_OUT
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main())
