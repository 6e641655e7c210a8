#!/usr/bin/env python3
"""How much a pool of keys gains for an MPI_Alltoall that DPU service processes move.

Buffers are temporary, so each of them is registered on the host, exported to the DPU, imported there and let go again.
Prints for each message size how long the exchange takes by each scheme of registration, and how much faster than by
MR + KSM it is, beside what is published: with the inputs as they are, and with the one unknown that the published gain
at 16 KB can choose. README.md beside this file says what is modelled, and costs.csv where each input comes from.
"""
import argparse
import dataclasses
import os
import sys

sys.dont_write_bytecode = True  # the modules are in the source folder
try:
    import numpy  # noqa: F401
except ImportError:
    sys.exit("contrib/dev model: needs numpy (Debian: python3-numpy)")

import counts
import plot
import report
from costs import SCHEMES, Measured, Refused, Table
from exchange import LIMITS, Exchange, check_whole
from study import PUBLISHED_RUN, Study

HERE = os.path.dirname(os.path.abspath(__file__))
DEFAULT_SIZES = ",".join(f"{1 << k}K" for k in range(10)) + ",1M"
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def size_of(text):
    digits = text.strip().upper().removesuffix("B")
    unit = digits[-1:] if digits[-1:] in ("K", "M", "G") else ""
    digits = digits.removesuffix(unit)
    if not digits.isascii() or not digits.isdigit() or len(digits) > 12:
        raise Refused(f"--sizes: '{text}' is not a size such as 512, 16K or 1M")
    size = int(digits) * UNITS[unit]
    if not 1 <= size <= LIMITS["message_bytes"]:
        raise Refused(f"--sizes: {text} is not in 1 .. {LIMITS['message_bytes']} bytes")
    return size


def sizes_of(text):
    return list(dict.fromkeys(size_of(part) for part in text.split(",")))


def nodes_of(text):
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        raise Refused(f"--scaling: '{text}' is not a list of numbers of nodes") from None
    for nodes in numbers:
        check_whole("nodes", nodes)
    return numbers


def schemes_of(text):
    names = list(dict.fromkeys(text.split(",")))
    for name in names:
        if name not in SCHEMES:
            raise Refused(f"--schemes: '{name}' is none of {', '.join(SCHEMES)}")
    return names


def table_of(options):
    table = Table.read(options.costs)
    for change in options.set:
        name, equals, value = change.partition("=")
        if not equals:
            raise Refused(f"--set: '{change}' is not NAME=VALUE")
        table = table.changed(name, value)
    return table


def parse(arguments):
    parser = argparse.ArgumentParser(prog="contrib/dev model", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--nodes", type=int, default=PUBLISHED_RUN.nodes, metavar="N", help="nodes (32)")
    add("--processes", type=int, default=PUBLISHED_RUN.processes, metavar="N", help="processes of each node (32)")
    add("--services", type=int, default=PUBLISHED_RUN.services, metavar="N", help="service processes of each DPU (4)")
    add("--in-flight", type=int, default=PUBLISHED_RUN.in_flight, metavar="N",
        help="sends, and as many receives, that a process has open at a time (4)")
    add("--sizes", default=DEFAULT_SIZES, metavar="LIST", help="message sizes (1K,2K,...,1M)")
    add("--schemes", default=",".join(SCHEMES), metavar="LIST", help=f"of {', '.join(SCHEMES)} (all)")
    add("--buffers", choices=("call", "message"), default=PUBLISHED_RUN.buffers,
        help="temporary buffers: two for each process and call, or two for each message (call)")
    add("--engine", choices=("auto", "event", "analytic"), default="auto",
        help="event by event, or in closed form (auto: by events up to 128 processes)")
    add("--costs", default=os.path.join(HERE, "costs.csv"), metavar="FILE", help="another table of inputs")
    add("--set", action="append", default=[], metavar="NAME=VALUE", help="changes one input of the table")
    add("--measured", metavar="FILE",
        help="costs of schemes from 'contrib/dev bench xgvmi --csv FILE', or the same rows as JSON")
    add("--no-calibrate", action="store_true", help="only with the inputs as they are")
    add("--scaling", metavar="LIST", help="also the gain of the pool for these numbers of nodes")
    add("--sensitivity", action="store_true", help="also the gain of the pool with half and with twice of each input")
    add("--compare", action="store_true", help="also the times of both engines")
    add("--counts", action="store_true",
        help="also what one exchange of the first size counts, pool and caches warm; commands are those of keys and "
             "aliases, not of registrations")
    add("--sources", action="store_true", help="prints the inputs and their sources, and nothing else")
    add("--csv", metavar="FILE", help="writes the rows of the tables")
    add("--json", metavar="FILE", help="writes the rows of the tables")
    add("--plot", metavar="FILE", help="draws them (.svg, .png, .pdf; needs matplotlib)")
    add("--validate", metavar="FILE",
        help="compares counts of examples/offload_alltoallv with those of the model, and does nothing else; "
             "status 1 if any differs")
    return parser.parse_args(arguments)


def validate(path):
    compared, wrong = counts.validate(path)
    print("\n".join(wrong + [f"{compared} counts, {len(wrong)} differ"]))
    return 1 if wrong else 0


def studies_of(options):
    """With the inputs as they are, and calibrated."""
    given = Study(table_of(options), Measured(options.measured) if options.measured else None, options.engine)
    if options.no_calibrate:
        return [("inputs as they are", given)]
    calibrated = given.calibrated()
    efficiency = calibrated.table.scalars["network_efficiency"]
    return [("inputs as they are", given),
            (f"network_efficiency = {efficiency:.3f}, chosen to gain what is published at 16 KB; "
             f"other sizes are predicted", calibrated)]


def print_further(options, study, exchange, sizes, schemes):
    if options.scaling:
        scaled = [(nodes, [study.gain(dataclasses.replace(exchange, nodes=nodes, message_bytes=size))
                           for size in sizes]) for nodes in nodes_of(options.scaling)]
        print(f"\nthe pool is faster, by nodes\n{report.of_scaling(scaled, sizes)}")
    if options.sensitivity:
        print("\nthe pool is faster, with one input changed\n"
              f"{report.of_sensitivity(study.sensitivity(exchange, sizes), sizes)}")
    if options.compare:
        print(f"\nboth engines\n{report.of_comparison(study.comparison(exchange, sizes, schemes))}")


def run(options):
    if options.validate:
        return validate(options.validate)
    if options.sources:
        print(report.of_sources(table_of(options)))
        return 0
    sizes, schemes = sizes_of(options.sizes), schemes_of(options.schemes)
    exchange = Exchange(options.nodes, options.processes, options.services, options.in_flight,
                        buffers=options.buffers)
    print(f"{exchange.nodes} nodes x {exchange.processes} processes, {exchange.services} service processes a node, "
          f"{exchange.in_flight} sends + {exchange.in_flight} receives; temporary buffers for each {exchange.buffers}")
    if options.counts:
        counted = [(scheme, counts.of_exchange(exchange.with_bytes(sizes[0]), scheme)) for scheme in schemes]
        print(f"\n{report.of_counts(counted)}")
    rows = []
    for title, study in studies_of(options):
        made = study.rows(exchange, sizes, schemes)
        rows += made
        print(f"\n{title}\n{report.of_rows(made)}")
        print_further(options, study, exchange, sizes, schemes)
    if options.csv:
        report.write_csv(options.csv, rows)
    if options.json:
        report.write_json(options.json, rows)
    if options.plot:
        plot.draw(options.plot, rows)
    return 0


def main(arguments):
    options = parse(arguments)
    try:
        return run(options)
    except Refused as why:
        print(f"contrib/dev model: {why}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
