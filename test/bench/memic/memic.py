#!/usr/bin/env python3
"""Atomic operations on memory of the card (MEMIC) and on host memory: what UCX asks of the device for each of them,
counted on the software device, beside modelled times and published times of a ConnectX-6.

The counts are measured. Times of the software device are not shown: they are those of this machine and cannot say what
MEMIC saves on a card. The modelled times come from a model that two of the published times set (atomics_model.py); a
second table has all published times beside it, and what the model misses.

usage: memic.py BUILD_DIR [--operations N] [--csv FILE]
       memic.py BUILD_DIR --model
"""
import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # atomics_model is in the source folder
import atomics_model
from atomics_model import PUBLISHED_US

FIELDS = ("test", "outstanding", "memory", "work_requests", "atomics", "commands", "modelled_us", "published_us")


def count(kinds):
    return sum(kind["count"] for kind in kinds.values())


def run_once(build, test, outstanding, memory, operations):
    """Returns operations, work requests, atomics and commands of a whole run."""
    environment = dict(os.environ, UCX_TLS="rc_x,lay_copy", UCX_LAYOUT_KEYS_SAME_HOST="always")
    with tempfile.NamedTemporaryFile() as stats:
        command = [os.path.join(build, "softhca-run"), "--stats", stats.name, "--",
                   "ucx_layout_perftest", "--self", "-t", test, "-m", f"host,{memory}", "-O", str(outstanding),
                   "-n", str(operations), "--method", "contig", "--json"]
        made = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
        device = json.load(stats)
    result = json.loads(made.stdout)["runs"][0]["results"][0]
    atomics = sum(kind["count"] for name, kind in device["wqes"].items() if name.startswith("atomic"))
    return result["validated_messages"], count(device["wqes"]), atomics, count(device["commands"])


def measure(build, test, outstanding, memory, operations):
    """The row of one test. What a run takes to begin and to end is the same in a longer one, so it is subtracted."""
    short = run_once(build, test, outstanding, memory, operations)
    long = run_once(build, test, outstanding, memory, 2 * operations)
    more = [after - before for after, before in zip(long, short)]
    each = [round(number / more[0], 3) for number in more[1:]]
    modelled = atomics_model.of_two_figures().time_us(test, outstanding, memory)
    return dict(zip(FIELDS, (test, outstanding, memory, *each, round(modelled, 3),
                             PUBLISHED_US[test, outstanding, memory])))


def table(rows):
    lines = ["            outstanding  memory   WQEs  atomics  commands  modelled us  published us  "
             "modelled host / rdma  published host / rdma"]
    for host, card in zip(rows[::2], rows[1::2]):
        for row in (host, card):
            line = (f"{row['test']:<11} {row['outstanding']:>11}  {row['memory']:<6} {row['work_requests']:>6g} "
                    f"{row['atomics']:>8g} {row['commands']:>9g} {row['modelled_us']:>12.3f} "
                    f"{row['published_us']:>13.3f}")
            if row is card:
                line += (f"  {host['modelled_us'] / card['modelled_us']:>20.2f}"
                         f"  {host['published_us'] / card['published_us']:>21.2f}")
            lines.append(line)
    return "\n".join(lines)


def summary(rows):
    # Beside the operations there are a few messages of each round, by which the processes agree.
    plain = [row for row in rows if row["atomics"] == 1 and row["work_requests"] < 1.02 and row["commands"] == 0]
    return f"memic: {len(rows)} rows, {len(plain)} with one work request and no command an operation"


def main():
    parser = argparse.ArgumentParser(prog="bench memic", description=__doc__.split("\n\nusage", maxsplit=1)[0],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", help=argparse.SUPPRESS)
    parser.add_argument("--operations", type=int, default=4000, help="of the shorter run of each row")
    parser.add_argument("--csv", help="write the figures into this file")
    parser.add_argument("--model", action="store_true", help="print the model beside what is published, run nothing")
    wanted = parser.parse_args()
    if wanted.model:
        print(atomics_model.table())
        return
    rows = []
    for test, outstanding, memory in PUBLISHED_US:
        try:
            rows.append(measure(wanted.build, test, outstanding, memory, wanted.operations))
        except subprocess.CalledProcessError as failure:
            sys.exit(f"bench memic: {test} on {memory}: {failure.stderr.strip()}")
    print("WQEs, atomics, commands: for each operation, counted on the software device. modelled: computed, not "
          "measured, by the\nmodel below that two of the published times set. published: ConnectX-6, UCX 1.16. host, "
          "rdma: where the word is; rdma\nis the card's memory.\n")
    print(table(rows))
    print("\nThe model beside what is published; \"set\": this time set the model.\n")
    print(atomics_model.table())
    if wanted.csv:
        with open(wanted.csv, "w", newline="", encoding="utf-8") as out:
            lines = csv.DictWriter(out, FIELDS, lineterminator="\n")
            lines.writeheader()
            lines.writerows(rows)
    print("\n" + summary(rows))


if __name__ == "__main__":
    main()
