"""Running test programs, and counting what their tests did."""
import json
import os
import re
import subprocess
import sys
import threading
import time

import limited

RUNNING = set()  # the processes that lead the sessions of running tests
STARTING = threading.RLock()  # held until a test that starts is in RUNNING
ENDING = threading.Event()  # no other test starts
# What a script that passed has skipped: part, reason. The first form is that of tables with times.
SKIPPED_PARTS = (re.compile(r"^skipped +(\S+:.*?) +[\d.]+ s +(.*)$", re.M), re.compile(r"^skipped: (.+): (.+)$", re.M))
TIME_TO_VANISH_S = 5  # for processes of a test that has ended


def end_all(signum, _frame):
    """Handles a signal. The main thread starts no test itself, so it can wait here for another thread that does."""
    ENDING.set()
    with STARTING:
        running = list(RUNNING)
    for process in running:
        limited.end(process.pid)
    sys.stdout.flush()
    os._exit(128 + signum)


class Outcome:
    def __init__(self, name):
        self.name, self.passed, self.failed, self.skipped = name, 0, 0, []
        self.seconds, self.output, self.why = 0.0, "", ""
        self.times = []  # (seconds, test) of each test that ran


def rest_of_output(process):
    """What a process has printed that was ended. Somebody may still have its output, who was not found."""
    try:
        return process.communicate(timeout=TIME_TO_VANISH_S)[0]
    except subprocess.TimeoutExpired as error:
        process.stdout.close()
        return (error.stdout or b"").decode(errors="replace")  # bytes, also of text


def run(name, command, env, report, timeout):
    outcome, begin = Outcome(name), time.monotonic()
    with STARTING:
        if ENDING.is_set():
            return outcome  # to nobody
        process = limited.start(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, errors="replace")
        RUNNING.add(process)
    try:
        outcome.output = process.communicate(timeout=timeout)[0]
        if left := limited.left(process.pid, TIME_TO_VANISH_S):
            outcome.output += limited.describe(process.pid)
            outcome.why = f"left {len(left)} processes behind"
            limited.end(process.pid)
    except subprocess.TimeoutExpired:
        doing = limited.describe(process.pid)
        limited.end(process.pid)
        outcome.output = rest_of_output(process) + doing
        outcome.why = f"no end after {timeout} s"
    finally:
        RUNNING.discard(process)
    outcome.seconds = time.monotonic() - begin
    if report is None:
        skipped = process.returncode == 77 and not outcome.why
        if skipped:
            last = outcome.output.strip().splitlines()[-1:] or [""]
            outcome.skipped.append((name, last[0]))
        elif process.returncode == 0 and not outcome.why:
            outcome.passed = 1
            outcome.skipped += [(f"{name}: {part}", reason) for form in SKIPPED_PARTS
                                for part, reason in form.findall(outcome.output)]
        else:
            outcome.failed = 1
        outcome.times.append((outcome.seconds, name))
        return outcome
    # GoogleTest ends with 1 after a failed test.
    ended_wrong = bool(outcome.why) or process.returncode not in (0, 1)
    if not count_gtest(outcome, report):
        outcome.failed += 1
        outcome.why = outcome.why or "wrote no report"
    elif ended_wrong or (process.returncode == 1 and outcome.failed == 0):
        outcome.why = outcome.why or (f"ended with status {process.returncode}" +
                                      (" without a failed test" if outcome.failed == 0 else ""))
        outcome.failed += 1
    return outcome


def count_gtest(outcome, report):
    """Counts the tests of a report. False if there is none."""
    try:
        with open(report, encoding="utf-8") as file:
            suites = json.load(file)["testsuites"]
    except (OSError, ValueError, KeyError):
        return False
    for suite in suites:
        for test in suite["testsuite"]:
            full = f'{outcome.name}:{suite["name"]}.{test["name"]}'
            outcome.times.append((float(test["time"].rstrip("s")), full))
            if test.get("failures"):
                outcome.failed += 1
            elif test["result"] == "SKIPPED":
                reasons = [entry["message"].strip().splitlines()[-1] for entry in test.get("skipped", [])]
                outcome.skipped.append((full, "; ".join(reasons)))
            elif test["result"] == "COMPLETED":
                outcome.passed += 1
    return True
