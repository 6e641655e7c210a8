#!/usr/bin/env python3
"""What libucx_layout_heap costs programs with much work for malloc, beside glibc and jemalloc.

Each kind of work runs as a process of its own, by glibc's malloc alone, with jemalloc preloaded and with the heap
preloaded, in turn, round by round. A ratio is the median over the rounds of glibc's time divided by the other one's:
more than 1 is faster than glibc. Memory is the most that a process had (ru_maxrss). The rows at the end are real
programs, with their start; their output is compared, too.

usage: heap.py BUILD_DIR [OPTIONS], see --help
"""
import argparse
import csv
import glob
import hashlib
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

FIELDS = ("work", "glibc_ms", "jemalloc", "heap", "glibc_mb", "jemalloc_mb", "heap_mb")
NUMPY = """
import numpy as np
a = np.arange(1.0, 2000001.0)
for _ in range(40):
    a = np.sqrt(a * a + 1) - 0.5 * np.roll(a, 1) / a
print(repr(float(a.sum())))
m = np.arange(250000.0).reshape(500, 500) % 97
print(repr(float((m @ m.T)[::7].sum())))
"""


def find_jemalloc():
    found = sorted(glob.glob("/usr/lib/*/libjemalloc.so.2") + glob.glob("/usr/lib*/libjemalloc.so.2"))
    return found[0] if found else None


def programs(folder):
    """Real programs: name, command, variables."""
    lines = os.path.join(folder, "lines")
    with open(lines, "w", encoding="ascii") as file:
        number = 1
        for _ in range(300000):
            number = (number * 6364136223846793005 + 1442695040888963407) % 2**64
            file.write(f"{number >> 40} some words behind a number\n")
    commands = [("true", ["true"]), ("sort", ["sort", "-S", "200M", "--parallel=2", lines]),
                ("xz -T2", ["xz", "-T2", "-2", "-c", lines]), ("gzip", ["gzip", "-1", "-n", "-c", lines]),
                ("python3", ["python3", "-c", "print(len({str(i): [i] * 9 for i in range(300000)}))"])]
    if subprocess.run(["python3", "-c", "import numpy"], capture_output=True, check=False).returncode == 0:
        commands.append(("NumPy", ["python3", "-c", NUMPY]))
    return [each for each in commands if shutil.which(each[1][0])]


def run(command, preloaded):
    """Seconds, megabytes, and what it printed."""
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "LC_ALL": "C"}
    env.pop("LD_PRELOAD", None)
    if preloaded:
        env["LD_PRELOAD"] = preloaded
    with tempfile.TemporaryFile() as output:
        start = time.perf_counter()
        process = subprocess.Popen(command, env=env, stdout=output, stdin=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        took = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        printed = output.read()
    if process.returncode != 0:
        sys.exit(f"bench heap: {' '.join(command)[:60]} ended with status {process.returncode}")
    return took, used.ru_maxrss / 1024, printed


def measure_row(name, command, is_side, sides, rounds):
    times, memory, printed = ({side: [] for side in sides} for _ in range(3))
    for number in range(rounds):
        order = list(sides) if number % 2 == 0 else list(reversed(sides))
        for side in order:
            took, most, output = run(command, sides[side])
            times[side].append(float(output) if is_side else took)
            memory[side].append(most)
            printed[side].append(hashlib.sha256(b"" if is_side else output).hexdigest())
    if len({each for of_side in printed.values() for each in of_side}) != 1:
        sys.exit(f"bench heap: {name} did not print the same with all")
    row = {"work": name, "glibc_ms": statistics.median(times["glibc"]) * 1e3}
    for side in sides:
        row[f"{side}_mb"] = statistics.median(memory[side])
        if side != "glibc":
            row[side] = statistics.median(a / b for a, b in zip(times["glibc"], times[side]))
    return row


def show(row):
    ratio = " ".join(f"{row[side]:9.2f}" if side in row else "        -" for side in ("jemalloc", "heap"))
    size = " ".join(f"{row[key]:9.1f}" if key in row else "        -" for key in FIELDS[4:])
    print(f"{row['work']:24} {row['glibc_ms']:9.1f} {ratio}   {size}", flush=True)


def main():
    parser = argparse.ArgumentParser(prog="bench heap")
    parser.add_argument("build", help=argparse.SUPPRESS)
    parser.add_argument("--only", action="append", metavar="TEXT", help="only rows whose name contains TEXT")
    parser.add_argument("--rounds", type=int, default=7, metavar="N", help="rounds of every row (7)")
    parser.add_argument("--csv", metavar="FILE", help="write the figures as CSV")
    options = parser.parse_args()
    heap = os.path.join(options.build, ".libs", "libucx_layout_heap.so")
    if not os.path.exists(heap):
        sys.exit("bench heap: configure left the heap out")
    sides = {"glibc": None, "heap": heap}
    if jemalloc := find_jemalloc():
        sides = {"glibc": None, "jemalloc": jemalloc, "heap": heap}
    side = os.path.join(options.build, "bench_heap_side")
    listed = subprocess.run([side], capture_output=True, text=True, check=True).stdout.splitlines()
    print(f"{'':24} {'glibc, ms':>9} {'jemalloc':>9} {'heap':>9}   {'glibc, MB':>9} {'jemalloc':>9} {'heap':>9}")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        all_rows = [(name, [side, name], True) for name in listed]
        all_rows += [(name, command, False) for name, command in programs(folder)]
        for name, command, is_side in all_rows:
            if options.only and not any(text in name for text in options.only):
                continue
            rows.append(measure_row(name, command, is_side, sides, options.rounds))
            show(rows[-1])
    if not rows:
        sys.exit("bench heap: nothing was measured")
    worst = min(rows, key=lambda row: row["heap"])
    mean = statistics.geometric_mean(row["heap"] for row in rows)
    print(f"heap: geomean {mean:.2f} of {len(rows)} rows, worst {worst['heap']:.2f} ({worst['work']})")
    if options.csv:
        with open(options.csv, "w", newline="", encoding="utf-8") as file:
            lines = csv.DictWriter(file, FIELDS, lineterminator="\n")
            lines.writeheader()
            lines.writerows(rows)


if __name__ == "__main__":
    main()
