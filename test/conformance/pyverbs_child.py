"""Runs the unmodified tests of one module of rdma-core's pyverbs and reports each test as it ends.

usage: pyverbs_child.py TESTS_FOLDER MODULE REPORT TIMEOUT_S [AFTER]      AFTER: begin behind the test with this id

The report has one JSON text per line: for each test {"start": ID}, then {"id", "outcome", "why", "seconds"}. If the
process dies inside a test, the test has a start and no end. The last line is {"done": true}.
"""
import faulthandler
import gc
import importlib
import json
import multiprocessing
import sys
import time
import types
import unittest


class Reporter(unittest.TestResult):
    def __init__(self, report, timeout_s):
        super().__init__()
        self.report, self.timeout_s = report, timeout_s
        self.ends, self.begin = {}, 0.0

    def line(self, **fields):
        print(json.dumps(fields), file=self.report, flush=True)

    def startTest(self, test):
        super().startTest(test)
        print(f"---- {test.id()}", flush=True)
        self.line(start=test.id())
        self.ends, self.begin = {}, time.monotonic()
        faulthandler.dump_traceback_later(self.timeout_s, exit=True)

    def stopTest(self, test):
        super().stopTest(test)
        faulthandler.cancel_dump_traceback_later()
        worst = next((end for end in ("failed", "skipped") if end in self.ends), "passed")
        self.line(id=test.id(), outcome=worst, why=self.ends.get(worst, ""), seconds=time.monotonic() - self.begin)

    def note(self, test, end, why):
        self.ends.setdefault(end, why)
        if not isinstance(test, unittest.TestCase):
            # The preparation of a class or of the module failed, so none of its tests is started.
            self.line(id=test.id(), outcome=end, why=why, seconds=0.0)

    def addError(self, test, err):
        super().addError(test, err)
        self.failed(test, err)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.failed(test, err)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.failed(subtest, err)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        print(f"skipped: {reason}", flush=True)
        self.note(test, "skipped", reason)

    def failed(self, test, err):
        print(self._exc_info_to_string(err, getattr(test, "test_case", test)), flush=True)
        self.note(test, "failed", f"{err[0].__name__}: {err[1]}".splitlines()[0])


def tests_of(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from tests_of(item)
        else:
            yield item


def main():
    folder, module, report, timeout_s = sys.argv[1:5]
    after = sys.argv[5] if len(sys.argv) > 5 else None
    sys.dont_write_bytecode = True
    # A test that is skipped while it makes its objects leaves them in a cycle. The garbage collector would destroy them
    # in any order, such as a context before its queues, which is a use after free. So there is no collection.
    gc.disable()
    # Tests start processes that call methods of the test itself. Another start method, the default since Python 3.14,
    # would have to pickle the test with the reporter and its open file.
    multiprocessing.set_start_method("fork")
    sys.path[0] = folder
    sys.argv[1:] = ["--dev", "mlx5_0", "--port", "1", "--gid", "0"]
    from args_parser import parser  # from the tests' folder
    parser.parse_args()
    # A package without the tests' __init__, which would import every module.
    package = types.ModuleType("tests")
    package.__path__ = [folder]
    sys.modules["tests"] = package
    # The tests' base classes and these helpers import each other. That works only if the helpers come first.
    importlib.import_module("tests.utils")
    with open(report, "w", encoding="utf-8") as file:
        reporter = Reporter(file, float(timeout_s))
        loaded = unittest.defaultTestLoader.loadTestsFromModule(importlib.import_module(f"tests.{module}"))
        found = list(tests_of(loaded))
        ids = [test.id() for test in found]
        begin = ids.index(after) + 1 if after else 0
        unittest.TestSuite(found[begin:]).run(reporter)
        reporter.line(done=True)
    gc.freeze()  # no collection at the end of the process, either


if __name__ == "__main__":
    main()
