"""Runs the packaged tests of rdma-core's pyverbs, one module at a time, under softhca-run."""
import gzip
import json
import os
import shutil
import sys

from cases import FAILED, HERE, SKIPPED, Result, read

PACKAGED = "/usr/share/doc/rdma-core/tests"
TEST_TIMEOUT_S = 60
MODULE_TIMEOUT_S = 600
SUITE = "pyverbs"

# Tests that fail where the device lacks a feature, because they do not ask for it: the start of their names, what they
# fail with, and the feature. They count as skipped.
LACKING = (
    ("test_mlx5_flow.Mlx5MatcherTest.test_flow_table_", "PyverbsRDMAError: Failed to create DevX object. Errno: 22",
     "the device has no flow tables"),
)


def modules():
    """The names of the installed test modules."""
    if not os.path.isdir(PACKAGED):
        return []
    return sorted({name.split(".")[0] for name in os.listdir(PACKAGED) if name.startswith("test_")})


def unpack(folder):
    """Copies the tests to `folder`. Debian compresses some of the files, as it does with documentation."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    for name in os.listdir(PACKAGED):
        source = os.path.join(PACKAGED, name)
        if name.endswith(".py.gz"):
            with gzip.open(source) as packed, open(os.path.join(folder, name[:-3]), "wb") as file:
                shutil.copyfileobj(packed, file)
        elif name.endswith(".py"):
            shutil.copy(source, folder)


def lines(report):
    try:
        with open(report, encoding="utf-8") as file:
            return [json.loads(line) for line in file if line.endswith("\n")]
    except (OSError, ValueError):
        return []


def judged(test, outcome, why):
    """The outcome and its reason, where a missing feature is no failure."""
    for start, error, reason in LACKING:
        if outcome == FAILED and test.startswith(start) and why.startswith(error):
            return SKIPPED, reason
    return outcome, why


def run_module(device, tests, module, suite=SUITE, options=()):
    """Yields the results of the module's tests as they come; `options` are those of softhca-run. A test that ends the
    process counts as failed, and a new process continues behind it."""
    after, turn = None, 0
    while True:
        name = module if turn == 0 else f"{module}.{turn}"
        log, report = device.log_of(suite, name), device.log_of(suite, name).removesuffix("log") + "json"
        if os.path.exists(report):
            os.remove(report)
        command = [sys.executable, os.path.join(HERE, "pyverbs_child.py"), tests, module, report, str(TEST_TIMEOUT_S)]
        status = device.run(command + ([after] if after else []), log, MODULE_TIMEOUT_S, options)
        running, done = None, False
        for line in lines(report):
            if "start" in line:
                running = line["start"]
            elif "id" in line:
                running = None
                test = line["id"].removeprefix("tests.")
                yield Result(suite, test, *judged(test, line["outcome"], line["why"]), line["seconds"], log)
            done = done or "done" in line
        if done and status == 0:
            return
        how = f"no end after {MODULE_TIMEOUT_S} s" if status is None else f"the process ended with status {status}"
        if "Timeout (" in read(log):
            how = f"no end after {TEST_TIMEOUT_S} s"
        if running is None:
            yield Result(suite, module, FAILED, how, 0.0, log)
            return
        yield Result(suite, running.removeprefix("tests."), FAILED, how, 0.0, log)
        after, turn = running, turn + 1
