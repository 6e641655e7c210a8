"""Runs the test programs on a device, and says which claims each of their tests is about."""
import fnmatch
import json
import os
import re
import subprocess

import commands
from capabilities import ATOMICS, EQUAL, LEVELS
from claims import About, DIFFERS, Evidence, OK, SKIPPED
from messages import last_line, syndromes

KEY_TESTS = "gtest_uct_mlx5_device"
PATIENCE = 900
ROUNDS_ON_A_CARD = 100000
ROUNDS = 2000
LINES_OF_A_FAILURE = 3


class Program:
    def __init__(self, name, excluded, tests):
        self.name = name
        self.excluded = excluded
        self.tests = tuple((pattern, About(claims)) for pattern, claims in tests)

    def settled(self):
        return About(" ".join(str(number) for _, about in self.tests for number in about.settled))

    def about(self, test):
        """The first pattern that fits."""
        return next((about for pattern, about in self.tests if fnmatch.fnmatchcase(test, pattern)), About(""))


# What only the software device can do is left out, and tests that know its capabilities by heart: the table of
# capabilities says more. The first pattern that fits a test has its claims.
PROGRAMS = (
    Program(KEY_TESTS,
            "*injected_faults*:*order_bugs*:self_test.finds_that_all_works:self_test.does_what_the_option_says", (
                ("key_properties.*", "2 22"),
                ("worked_keys.bound_on_the_callers_queue_pair*", "3 20"),
                ("worked_keys.region_at_an_address*", "21"),
                ("worked_keys.atomics_*", "~24"),
                ("worked_keys.*", "~2"),
                ("*strided_keys.*", "~2"),
                ("key_limits.entries_*", "25"),
                ("key_limits.a_small_own_key_*", "~2 25"),
                ("key_limits.*", "~2"),
                ("key_errors.region_without_the_right_*", "~37"),
                ("key_errors.regions_nest_as_deep_*", "~2 ~14"),
                ("memory_kinds.memory_on_the_device*", "~39"),
                ("memory_kinds.*", "~2"),
                ("region_addresses.an_overlay_*", "~23"),
                ("region_addresses.*", "21"),
                ("many_keys.*", "~3 ~20"),
                ("key_stress.*", "~3 ~20"),
                ("self_test.regions_under_overlays_*", "16 23"),
                ("atomic_words.*", "24"),
                ("card_claims.two_lists_in_memory_*", "~25"),
                ("card_claims.each_of_many_batches_*", "3 20"),
                ("card_claims.keys_below_the_first_one_*", "~2 ~19 ~37"),
                ("card_claims.indexes_of_keys_*", "~36"),
                ("card_claims.a_chain_one_too_deep_*", "10 14"),
                ("card_claims.an_entry_of_no_bytes_*", "15"),
                ("card_claims.the_last_word_*", "~13 ~42"),
                ("card_claims.times_*", "~6"),
                ("*card_order.*", "13"),
                ("card_requests.changes_with_the_fence_*", "3 20"),
                ("card_requests.a_list_that_begins_*", "50"),
                ("card_requests.a_bind_that_names_*", "49"),
                ("card_requests.a_bind_looks_*", "18"),
                ("card_requests.a_key_that_is_bound_anew_*", "35"),
                ("card_requests.entries_come_*", "18"),
                ("card_requests.a_bind_does_not_move_*", "18"),
                ("card_requests.a_repeat_block_*", "17"),
                ("card_requests.a_request_whose_source_*", "11"),
                ("card_requests.short_reads_*", "51"),
                ("shared_words.*", "48"),
                ("dynamic_claims.a_wrong_access_key_*", "28"),
                ("dynamic_claims.a_refused_request_*", "29"),
                ("dynamic_claims.stream_channels_*", "30"),
                ("dynamic_claims.a_request_with_the_route_*", "31"),
                ("optional_fields_of_initiators.*", "33"),
            )),
    Program("gtest_uct_mlx5_memory", "*pool_faults*:*too_few_keys:*too_little_memory", (
        ("cpu_copies.no_atomic_operation_*", "40"),
        ("cpu_copies.bytes_beside_*", "~40"),
        ("memory_pool.*", "39"),
        ("exhaustion.*", "~39"),
    )),
    Program("gtest_ucp_two_process_device", "", (
        ("*device_windows.*", "1"),
        ("*huge_device_windows.*", "1"),
        ("*device_atomics.*", "~38"),
        ("*counts.*", "~4"),
        ("*keys_of_transfers_show_what_a_rebound_window_*", "34 ~35"),
        ("*keys_of_transfers_show_new_memory_*", "34 ~35"),
        ("*transfers_show_new_memory_*", "~34 ~35"),
        ("map_cycles_on_a_device.*", "~35"),
        ("*device_threads.*", "~35"),
        ("*hostile_access.*unmapped*", "34"),
        ("*hostile_access.*", "37"),
        ("*forged_marks_of_hosts.*", "~37"),
        ("*several_devices.*", "~1"),
    )),
)

# Why a test that failed says nothing of a claim: it needs what the device does not have.
OF_ATOMICS = re.compile(r"atomic|fetch_add", re.I)
NO_ATOMICS = "IBV_ACCESS_REMOTE_ATOMIC"  # in the message that refuses a key
NO_MEMORY = re.compile(r"max_dm_size is 0|card_memory\.|pool_limits\.")
FEW_LEVELS = re.compile(r"a region over one of depth \d is over the limit")
OVER_KEYS = re.compile(r"^self_test\.regions_under_overlays_|^pool_limits\.keys_at_addresses_work_by_a_second_key_")
MOST_LEVELS = 4  # that a test asks for

BEGIN = re.compile(r"^\[ RUN      \] (\S+)")
END = re.compile(r"^\[ *(OK|FAILED|SKIPPED) *\] (\S+?),? ")
RESULTS = {"OK": OK, "FAILED": DIFFERS, "SKIPPED": SKIPPED}


def read_log(text):
    """test -> its result and its lines; a test that did not end is one that failed. Some tests print the log of
    another program with tests of its own."""
    found, running, lines = {}, "", []
    for line in text.splitlines():
        if not running and (begin := BEGIN.match(line)):
            running, lines = begin[1], []
        elif running and (end := END.match(line + " ")) and end[2] == running:
            found[running] = (RESULTS[end[1]], lines)
            running = ""
        elif running:
            lines.append(line)
    if running:
        found[running] = (DIFFERS, lines + ["did not end"])
    return found


def why_failed(lines):
    """The first complaint of GoogleTest, without the folder of the source, or the last line."""
    at = next((i for i, line in enumerate(lines) if line.endswith("Failure")), None)
    if at is None:
        return last_line("\n".join(lines))
    words = [line.strip() for line in lines[at + 1:at + 1 + LINES_OF_A_FAILURE]]
    return " ".join([os.path.basename(lines[at]), *words])


def read_figures(path):
    """test -> what it recorded with RecordProperty."""
    known = {"name", "value_param", "type_param", "file", "line", "status", "result", "timestamp", "time", "classname",
             "failures", "skipped"}
    try:
        with open(path, encoding="utf-8") as file:
            suites = json.load(file)["testsuites"]
    except (OSError, ValueError):
        return {}
    return {f"{suite['name']}.{test['name']}": {name: value for name, value in test.items() if name not in known}
            for suite in suites for test in suite["testsuite"]}


class TestPrograms:
    def __init__(self, options, report, env, rounds, logs):
        self._options = options
        self._report = report
        self._logs = logs
        self._env = dict(env, UCXL_TEST_DEVICE=options.device, UCXL_TEST_KEY_ROUNDS=str(rounds))
        self._has_atomics = report.capabilities.used(ATOMICS) != "no"
        self._has_levels = report.capabilities.used(LEVELS) in ("", str(MOST_LEVELS))
        self._has_equal_entries = report.capabilities.used(EQUAL) != "no"
        self._has_memory = True

    def run(self):
        for program in PROGRAMS:
            self._run(program)

    def _run(self, program):
        path = os.path.join(self._options.build, program.name)
        if not os.access(path, os.X_OK):
            self._report.add(Evidence("program", program.name, About(""), SKIPPED, "not built"))
            self._report.add_quietly(Evidence("test", program.name, program.settled(), SKIPPED,
                                              f"{program.name} is not built"))
            return
        log, document = (os.path.join(self._logs, program.name + end) for end in (".log", ".json"))
        excluded = f"-{program.excluded}" if program.excluded else ""
        command = [path, f"--gtest_output=json:{document}",
                   f"--gtest_filter={self._options.tests or '*'}{excluded}"]
        with open(log, "w", encoding="utf-8") as file:
            try:
                status = commands.run(command, PATIENCE, file, subprocess.STDOUT, self._env).returncode
            except subprocess.TimeoutExpired:
                status = None
        with open(log, encoding="utf-8", errors="replace") as file:
            text = file.read()
        self._judge(program, status, text, read_figures(document), log)

    def _lacks(self, test, output):
        text = f"{test}\n{output}"
        if not self._has_equal_entries and OVER_KEYS.search(test):
            return EQUAL
        if not self._has_memory and NO_MEMORY.search(text):
            return "memory of the card"
        if not self._has_levels and FEW_LEVELS.search(text):
            return f"{MOST_LEVELS} levels of keys"
        if not self._has_atomics and (OF_ATOMICS.search(test) or NO_ATOMICS in output):
            return "atomic operations in keys"
        return ""

    def _judge(self, program, status, text, figures, log):
        counts = {OK: 0, DIFFERS: 0, SKIPPED: 0}
        self._has_memory = self._has_memory and "max_dm_size is 0" not in text
        for test, (result, lines) in read_log(text).items():
            output = "\n".join(lines)
            note = last_line(output) if result == SKIPPED else ""
            if result == DIFFERS:
                note = why_failed(lines)
                if lacking := self._lacks(test, output):
                    result, note = SKIPPED, f"the test needs {lacking}"
            counts[result] += 1
            self._report.add_quietly(Evidence("test", test, program.about(test), result, note.strip(),
                                              figures.get(test, {}), syndromes(output) if result == DIFFERS else []))
            if result == DIFFERS:
                print(f"{str(program.about(test)):14} {test} differs: {note}", flush=True)
        if not any(counts.values()) and status == 0:
            return  # no test of this program was asked for
        # A signal (status < 0) is never what a test lacks.
        ended_badly = status is None or status < 0 or (status != 0 and counts[SKIPPED] == 0)
        failed = counts[DIFFERS] > 0 or ended_badly
        skipped = f", {counts[SKIPPED]} not possible here" if counts[SKIPPED] else ""
        self._report.add(Evidence("program", program.name, About(""), DIFFERS if failed else OK,
                                  f"{counts[OK]} passed, {counts[DIFFERS]} failed{skipped}, see {log}",
                                  {"passed": counts[OK], "failed": counts[DIFFERS], "skipped": counts[SKIPPED]}))
