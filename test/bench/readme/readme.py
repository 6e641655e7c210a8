#!/usr/bin/env python3
"""Measures the figures of README.md: `bench transfer` several times, of every figure the median.

usage: readme.py BUILD_DIR PREFIX [RUNS|RUN.csv...]

Writes PREFIX.csv and draws it as PREFIX.svg; prints the table of README.md. RUNS is 5 by default; a run takes about a
minute. Instead, runs that were measured before can be given, what `bench transfer --csv` wrote. For the figures in the
checkout PREFIX is docs/images/speed.
"""
import csv
import os
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # readme_figures is in the source folder
import readme_figures


def read(figures):
    """Of one run: {(layout, packed, way): {method: (seconds, time by that of windows)}}."""
    made = {}
    with open(figures, newline="", encoding="utf-8") as lines:
        for line in csv.DictReader(lines):
            row = made.setdefault((line["layout"], line["packed"], line["way"]), {})
            row[line["method"]] = (float(line["seconds"]), float(line["time_by_ours"]))
    return made


def measure(build):
    with tempfile.TemporaryDirectory() as scratch:
        figures = os.path.join(scratch, "run.csv")
        only = [word for _, layout, _ in readme_figures.ROWS for word in ("--only", layout)]
        subprocess.run([os.path.join(build, "bench_transfer"), "--quick", "--without-tax", "--csv", figures, *only],
                       check=True, stdout=subprocess.DEVNULL)
        return read(figures)


def write_medians(runs, file):
    with open(file, "w", newline="", encoding="utf-8") as out:
        lines = csv.writer(out, lineterminator="\n")
        lines.writerow(("layout", "packed", "way", "method", "microseconds", "time_by_window", "runs"))
        for row in ((layout, str(packed), readme_figures.WAY) for _, layout, packed in readme_figures.ROWS):
            for method in readme_figures.METHODS:
                seen = [run[row][method] for run in runs]
                seconds, ratio = (statistics.median(column) for column in zip(*seen))
                lines.writerow((*row, method, f"{seconds * 1e6:.4g}", f"{ratio:.4g}", len(runs)))


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__.strip())
    build, prefix, *more = sys.argv[1:]
    if more and not more[0].isdigit():
        runs = [read(figures) for figures in more]
    else:
        runs = [measure(build) for _ in range(int(more[0]) if more else 5)]
    write_medians(runs, prefix + ".csv")
    with open(prefix + ".svg", "w", encoding="utf-8") as picture:
        picture.write(readme_figures.picture_of(prefix + ".csv"))
    print(readme_figures.table_of(prefix + ".csv"))


if __name__ == "__main__":
    main()
