#!/usr/bin/env python3
"""Prints the tables of docs/performance.md from what `bench transfer --csv` wrote.

usage: performance.py RUN.csv...

The files are parts of one run, each with other layouts.
"""
import csv
import sys

WAYS = {"strided to contiguous": "sc", "strided to strided": "ss"}
PEERS = ("openmpi type", "openmpi hand", "openmpi-ucx type", "openmpi-ucx hand", "mpich type", "mpich hand")
SIZES = ((1 << 20, "MB"), (1 << 10, "KB"))


def read(files):
    """{(layout, packed, way): {method: {column: number}}}, in the order of the files."""
    rows = {}
    for file in files:
        with open(file, newline="", encoding="utf-8") as lines:
            for line in csv.DictReader(lines):
                if line["table"] != "transfer":
                    continue
                numbers = {name: float(value) for name, value in line.items()
                           if name not in ("layout", "table", "way", "method") and value != ""}
                row = rows.setdefault((line["layout"], int(line["packed"]), WAYS[line["way"]]), {})
                row[line["method"]] = numbers
    return rows


def size_of(packed):
    for unit, name in SIZES:
        if packed >= unit * 0.9:
            return f"{packed / unit:.0f} {name}"
    return f"{packed} B"


def microseconds(row, method):
    time = row[method]["seconds"] * 1e6
    return f"{time:.0f}" if time >= 99.5 else f"{time:.1f}" if time >= 9.95 else f"{time:.2f}"


def ratio(number):
    return f"{number:.0f}" if number >= 99.5 else f"{number:.1f}" if number >= 9.95 else f"{number:.2f}"


def against(row, others, mine):
    """The least of their times, by that of `mine`."""
    return ratio(min(row[other]["time_by_ours"] for other in others if other in row) / row[mine]["time_by_ours"])


def of_limit(row, method):
    part = row[method].get("of_the_limit")
    return "" if part is None else f"{part:.2f}"


def table(head, lines):
    print("| " + " | ".join(head) + " |")
    print("|---|---|" + "--:|" * (len(head) - 2))
    for line in lines:
        print("| " + " | ".join(line) + " |")


def messages(rows):
    head = ("layout, packed", "to", "window, us", "mapped, us", "R", "M", "contiguous", "UCP iov", "UCP by hand",
            "of limit", "M of limit", "others")
    table(head, ((f"{layout}, {size_of(packed)}", way, microseconds(row, "window"), microseconds(row, "mapped"),
                  against(row, PEERS, "window"), against(row, PEERS, "mapped"),
                  against(row, ("contiguous",), "window"), against(row, ("ucp iov",), "window"),
                  against(row, ("ucp hand",), "window"), of_limit(row, "window"), of_limit(row, "mapped"),
                  f"{row['window'].get('others_part', 0) * 100:.0f} %")
                 for (layout, packed, way), row in rows.items()))


def remote_access(rows):
    head = ("layout, packed", "to", "copy, us", "put, us", "get, us", "put of limit", "get of limit", "put of peers",
            "get of peers")
    table(head, ((f"{layout}, {size_of(packed)}", way, *(microseconds(row, by) for by in ("copy", "put", "get")),
                  of_limit(row, "put"), of_limit(row, "get"), against(row, PEERS, "put"), against(row, PEERS, "get"))
                 for (layout, packed, way), row in rows.items()))


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__.strip())
    rows = read(sys.argv[1:])
    messages(rows)
    print()
    remote_access(rows)


if __name__ == "__main__":
    main()
