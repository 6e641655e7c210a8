"""Runs a part of a GoogleTest program under softhca-run and reads its output. A test that ends the process or does not
end counts as failed, and a new process continues behind it."""
import dataclasses
import os
import re
import signal
import subprocess
import time

from cases import FAILED, PASSED, SKIPPED, STOP, Result, end_group, is_of_signal, processor_seconds

TEST_TIMEOUT_S = 300  # processor time of one test; it may go as long without using any
LOG_LIMIT = 64 << 20  # bytes; a test that polls for ever may print as long
BEGIN = re.compile(r"\[ RUN      \] (\S+)")
END = re.compile(r"\[       OK \] |\[  FAILED  \] ")
SKIP = re.compile(r"\[ +SKIP +\] ?\(?(.*?)\)?$")
ERROR = re.compile(r"^.*(?:Failure$|assertion|\bERROR\b|\bFATAL\b|Caught signal).*$", re.M)


@dataclasses.dataclass
class Shard:
    """Tests of one suite, under the full names that the program lists."""
    suite: str
    name: str  # of the output
    tests: list


class Watch:
    """Follows the output of a running program from test to test."""

    def __init__(self, log):
        self.file = open(log, encoding="utf-8", errors="replace")  # pylint: disable=consider-using-with
        self.rest = ""
        self.size = 0
        self.tests = {}  # name: [lines, or None if it did not end; seconds]
        self.current = None
        self.lines = []
        self.begun = 0.0

    def read(self):
        """Reads what is new, and tells whether a test began or ended."""
        text = self.file.read()
        self.size += len(text)
        lines = (self.rest + text).split("\n")
        self.rest = lines.pop()
        moved = False
        for line in lines:
            found = BEGIN.search(line)
            if found:
                self.current, self.lines, self.begun, moved = found[1], [], time.monotonic(), True
                continue
            if self.current is None:
                continue
            self.lines.append(line)
            # The summary of failures at the end of a program has the same words without a running test.
            if END.search(line) and self.current in line:
                self.tests[self.current] = (self.lines, "FAILED" not in line, time.monotonic() - self.begun)
                self.current, moved = None, True
        return moved


def run_program(device, options, command, log):
    """Runs the command with the device and `options` of softhca-run. Returns the watch with the tests' output, and how
    the program ended unless that was right."""
    with open(log, "wb") as file:
        process = subprocess.Popen(["softhca-run", *options, "--", *command], env=device.env, cwd=device.folder,
                                   stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
                                   start_new_session=True)
    watch, how, ended = Watch(log), "", None
    used_before, used, moved = 0.0, 0.0, time.monotonic()
    try:
        while not how:
            try:
                status = process.wait(1.0)
                how = "" if status in (0, 1) else f"the process ended with {described(status)}"
                ended = status
                break
            except subprocess.TimeoutExpired:
                pass
            now = processor_seconds(process.pid)
            if watch.read():
                used_before, moved = now, time.monotonic()
            if now > used:
                used, moved = now, time.monotonic()
            if used - used_before > TEST_TIMEOUT_S or time.monotonic() > moved + TEST_TIMEOUT_S:
                how = f"no end after {TEST_TIMEOUT_S} s"
            if watch.size > LOG_LIMIT:
                how = f"printed more than {LOG_LIMIT >> 20} MiB"
            if STOP.is_set():
                how = "interrupted"
    finally:
        end_group(process)
    watch.read()
    watch.file.close()
    if not how and watch.current:
        how = f"the process ended with {described(ended)} in the test"
    elif not how and ended == 1 and all(passed for _, passed, _ in watch.tests.values()):
        how = f"the process ended with {described(ended)} without a failed test"
    return watch, how


def described(status):
    if not is_of_signal(status):
        return f"status {status}"
    try:
        return signal.Signals(-status if status < 0 else status - 128).name
    except ValueError:
        return f"status {status}"


def judged(suite, name, lines, passed, seconds, log):
    skips = [found[1] for found in map(SKIP.search, lines) if found]
    if not passed:
        return Result(suite, name, FAILED, first_error(lines), seconds, log)
    if skips:
        return Result(suite, name, SKIPPED, skips[0] or "no reason", seconds, log)
    return Result(suite, name, PASSED, "", seconds, log)


def first_error(lines):
    text = "\n".join(line for line in lines if not END.search(line))
    found = ERROR.search(text)
    if not found:
        return "failed"
    if not found[0].endswith("Failure"):
        return found[0].strip()[-200:]
    # The line behind "FILE:LINE: Failure" says what was expected.
    place, words = found[0].removesuffix(": Failure"), text[found.end():].strip().split("\n")
    return f"{os.path.basename(place)}: {' '.join(word.strip() for word in words[:3])}"[:200]


def run_shard(device, options, program, shard):
    """Yields the results of the shard's tests, process by process."""
    left, turn = list(shard.tests), 0
    while left and not STOP.is_set():
        name = shard.name if turn == 0 else f"{shard.name}.{turn}"
        log = device.log_of("ucx-gtest", name)
        # A list of all names can be longer than an argument may be.
        flags = log.removesuffix(".log") + ".flags"
        with open(flags, "w", encoding="utf-8") as file:
            file.write("--gtest_filter=" + ":".join(left) + "\n")
        watch, how = run_program(device, options, [program, f"--gtest_flagfile={flags}"], log)
        for test, (lines, passed, seconds) in watch.tests.items():
            yield judged(shard.suite, test, lines, passed, seconds, log)
        if how and watch.current:
            yield Result(shard.suite, watch.current, FAILED, how, time.monotonic() - watch.begun, log)
        elif how and watch.tests and not STOP.is_set():
            yield Result(shard.suite, f"{name}: behind its last test", FAILED, how, 0.0, log)
        done = {*watch.tests, *((watch.current,) if watch.current else ())}
        if not done.intersection(left):
            for test in left:
                yield Result(shard.suite, test, FAILED, how or "the program did not run it", 0.0, log)
            return
        left, turn = [test for test in left if test not in done], turn + 1


def list_tests(device, program):
    """The full names of all tests that the program has with this device. UCX makes tests for the transports that it
    finds."""
    text = subprocess.run(["softhca-run", "--", program, "--gtest_list_tests"], env=device.env, cwd=device.folder,
                          check=True, capture_output=True, text=True).stdout
    names, suite = [], ""
    for line in text.split("\n"):
        name = line.split("#")[0].rstrip()
        if name.startswith("  "):
            names.append(suite + name.strip())
        elif re.fullmatch(r"\S+\.", name):
            suite = name
    return names
