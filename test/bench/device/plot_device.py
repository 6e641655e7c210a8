#!/usr/bin/env python3
"""Draws the figures of `bench device`: work requests and copied bytes of each method, a panel for each.

usage: plot_device.py FIGURES.csv PICTURE
"""
import csv
import sys

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402

OPERATIONS = ("message", "put")


def read_rows(file):
    """Of each operation: {pattern: {method: line}}, in the order of the file."""
    made = {operation: {} for operation in OPERATIONS}
    with open(file, newline="", encoding="utf-8") as lines:
        for line in csv.DictReader(lines):
            made[line["operation"]].setdefault(line["pattern"], {})[line["method"]] = line
    return made


PANELS = (("work requests", lambda line: float(line["work_requests"]), "log"),
          ("bytes copied by CPUs, of each packed one", lambda line: float(line["bytes_copied"]) / float(line["packed"]),
           "linear"))


def draw(axes, rows, title, figure_of, scale):
    methods = list(dict.fromkeys(method for row in rows.values() for method in row))
    height = 0.85 / len(methods)
    for number, method in enumerate(methods):
        places = [i + number * height for i, row in enumerate(rows.values()) if method in row]
        axes.barh(places, [figure_of(row[method]) for row in rows.values() if method in row], height, label=method)
    axes.set_yticks([i + 0.4 for i in range(len(rows))], list(rows), fontsize=7)
    axes.set_xscale(scale)
    axes.set_title(title, fontsize=9)
    axes.invert_yaxis()
    axes.margins(y=0.01)
    axes.legend(fontsize=7)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.strip())
    all_rows = read_rows(sys.argv[1])
    figure, axes = pyplot.subplots(len(OPERATIONS), len(PANELS), squeeze=False,
                                   figsize=(10, 2 + 0.7 * max(map(len, all_rows.values()))))
    for place, operation in zip(axes, OPERATIONS):
        if all_rows[operation]:
            for one, (title, figure_of, scale) in zip(place, PANELS):
                draw(one, all_rows[operation], f"{operation}: {title}", figure_of, scale)
    figure.tight_layout()
    figure.savefig(sys.argv[2], dpi=110)
    print(sys.argv[2])


if __name__ == "__main__":
    main()
