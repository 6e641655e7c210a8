#!/usr/bin/env python3
"""Draws the figures of a benchmark: one picture per table, a group of bars per row.

usage: plot.py FIGURES.csv PREFIX
"""
import csv
import sys

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402


def tables(file):
    """Of each (table, way): {row name: {method: GB/s}}, in the order of the file."""
    made = {}
    with open(file, newline="", encoding="utf-8") as lines:
        for line in csv.DictReader(lines):
            rows = made.setdefault((line["table"], line["way"]), {})
            packed = int(line["packed"])
            size = f"{packed / 1024:.0f} KB" if packed < 1000000 else f"{packed / 1048576:.1f} MB"
            rows.setdefault(f"{line['layout']}, {size}", {})[line["method"]] = float(line["gigabytes_per_second"])
    return made


def draw(title, rows, file):
    methods = list(dict.fromkeys(method for row in rows.values() for method in row))
    figure, axes = pyplot.subplots(figsize=(10, 1.5 + 0.11 * len(methods) * len(rows)))
    height = 0.85 / len(methods)
    for number, method in enumerate(methods):
        places = [i + number * height for i, row in enumerate(rows.values()) if method in row]
        axes.barh(places, [row[method] for row in rows.values() if method in row], height, label=method)
    axes.set_yticks([i + 0.4 for i in range(len(rows))], list(rows), fontsize=7)
    axes.set_xscale("log")
    axes.set_xlabel("GB/s")
    axes.set_title(title)
    axes.invert_yaxis()
    axes.margins(y=0.01)
    axes.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(file, dpi=110)
    pyplot.close(figure)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.strip())
    for (table, way), rows in tables(sys.argv[1]).items():
        file = f"{sys.argv[2]}-" + f"{table}-{way}.png".replace(" ", "-")
        draw(f"{way}, {table}", rows, file)
        print(file)


if __name__ == "__main__":
    main()
