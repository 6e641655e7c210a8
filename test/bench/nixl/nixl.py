#!/usr/bin/env python3
"""The backend UCX_LAYOUT of NIXL beside NIXL's own backend UCX: lists of blocks at random places, between two
processes.

Each backend has a pair of agents of its own; they take turns, round by round, and the pair that waits is stopped,
because progress threads of NIXL's own backend never sleep. A ratio is the median over the rounds of UCX divided by
UCX_LAYOUT, so that more than 1 means that UCX_LAYOUT is better. Before each transfer the source changes a byte of each
cache line. Bytes of both sides are compared first. Memory of UCX_LAYOUT moves into files when it is
registered (option shared_memory=move); --private measures memory that stays as it is.

The columns:
    prepare    initialize_xfer() of a list: the time of UCX_LAYOUT, and the ratio
    post CPU   CPU time of the thread that calls transfer()
    post       the time of that call
    whole      from the call until check_xfer_state() says DONE
    CPU        of both processes with all threads, for the whole
    fresh      prepare, post and wait with a list that nobody used before
    metadata   bytes of get_agent_metadata() of the target

usage: nixl.py [--quick] [--private] [--summary] [--csv FILE] [--rounds N] [--memory-limit MB] [FILTER]

Has to be run by a Python that has NIXL's wheel and NumPy, with NIXL_PLUGIN_DIR: `contrib/dev bench nixl` does.
"""
import argparse
import contextlib
import csv
import os
import signal
import statistics
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), *[os.pardir] * 2, "conformance", "nixl"))

import numpy as np
from agents import Process, connect

COUNTS = (1_000, 10_000, 120_000)
LENGTHS = {"512 B": (512,), "4 KB": (4096,), "64 KB": (65536,), "mixed": (512, 4096, 65536)}
SPREAD = 1.5  # bytes of memory for each byte that is moved
FIELDS = ("prepare", "post_cpu", "post", "whole", "cpu", "fresh")


def lengths_of(kind, count):
    """Mixed are mostly short ones: 12 of 512 B and 3 of 4 KB for each one of 64 KB."""
    if len(LENGTHS[kind]) == 1:
        return np.full(count, LENGTHS[kind][0], np.int64)
    return np.random.default_rng(3).permutation(np.resize([512] * 12 + [4096] * 3 + [65536], count))


def blocks_of(lengths, seed):
    """Blocks of these lengths at random places that do not overlap: their order in memory is random."""
    random = np.random.default_rng(seed)
    order = random.permutation(len(lengths))
    gaps = random.multinomial(int(lengths.sum() * (SPREAD - 1)) // 512, [1 / len(lengths)] * len(lengths)) * 512
    ends = np.cumsum(lengths[order] + gaps[order])
    offsets = np.empty(len(lengths), np.int64)
    offsets[order] = ends - lengths[order]
    return np.stack([np.zeros(len(lengths), np.int64), offsets, lengths], 1)


class Pair:
    """Two agents of one backend, with memory."""

    def __init__(self, backend, private, length):
        plugins = {"UCX": {"NIXL_PLUGIN_DIR": None}, "UCX_LAYOUT": {}}
        options = {} if private else {"shared_memory": "move"}
        self.both = [Process(name, backend, options, environment=plugins[backend]) for name in ("one", "two")]
        for number, each in enumerate(self.both):
            each.add_memory(length, "private", number)
        connect(*self.both)
        self.addresses = self.both[1].addresses()
        self.metadata = len(self.both[1].metadata())
        self.signal(signal.SIGSTOP)

    def prepare(self, operation, local, remote):
        return self.both[0].prepare_timed(operation, local, remote, self.addresses, "two")

    def change_source(self, operation):
        self.both[operation == "READ"].touch(0)

    def measure(self, number):
        """What one transfer took."""
        before = self.both[1].cpu_seconds()
        taken = self.both[0].measure(number)
        taken["cpu"] += self.both[1].cpu_seconds() - before
        return taken

    def fresh(self, operation, local, remote):
        number, prepare = self.prepare(operation, local, remote)
        taken = self.measure(number)
        self.both[0].release(number)
        return prepare + taken["whole"]

    @contextlib.contextmanager
    def running(self):
        """Inside the processes run, outside they are stopped."""
        self.signal(signal.SIGCONT)
        yield
        self.signal(signal.SIGSTOP)

    def signal(self, number):
        for each in self.both:
            each.signal(number)

    def close(self):
        for each in self.both:
            each.kill()  # NIXL's own backend may crash at the end of its process: docs/nixl.md


def check_bytes(pair, operation, local, remote):
    number, _ = pair.prepare(operation, local, remote)
    pair.measure(number)
    pair.both[0].release(number)
    one, two = (np.frombuffer(each.contents()[0], np.uint8) for each in pair.both)
    for (_, here, length), (_, there, _) in zip(local, remote):
        if not np.array_equal(one[here:here + length], two[there:there + length]):
            raise SystemExit(f"wrong bytes: {operation} of {len(local)} blocks")


def measure_row(pairs, operation, lengths, rounds):
    local, remote = blocks_of(lengths, 1), blocks_of(lengths, 2)
    numbers, found = {}, {backend: [] for backend in pairs}
    for backend, pair in pairs.items():
        with pair.running():
            check_bytes(pair, operation, local, remote)
            numbers[backend], _ = pair.prepare(operation, local, remote)
            pair.measure(numbers[backend])
    for place in range(rounds):
        fresh = blocks_of(lengths, 100 + 2 * place), blocks_of(lengths, 101 + 2 * place)
        for backend, pair in pairs.items():
            with pair.running():
                again, prepare = pair.prepare(operation, local, remote)
                pair.both[0].release(again)
                pair.change_source(operation)
                taken = pair.measure(numbers[backend])
                pair.change_source(operation)
                found[backend].append(taken | {"prepare": prepare, "fresh": pair.fresh(operation, *fresh)})
    for backend, pair in pairs.items():
        with pair.running():
            pair.both[0].release(numbers[backend])
    return found


def ratio(found, field):
    return statistics.median(theirs[field] / max(ours[field], 1e-9)
                             for theirs, ours in zip(found["UCX"], found["UCX_LAYOUT"]))


def time_of(found, field):
    return statistics.median(each[field] for each in found["UCX_LAYOUT"])


def words(seconds):
    return f"{seconds * 1e6:.0f} us" if seconds < 1e-3 else f"{seconds * 1e3:.1f} ms"


def rows(options):
    counts = COUNTS[:2] if options.quick else COUNTS
    for count in counts:
        for kind in LENGTHS:
            for operation in ("WRITE", "READ"):
                name = f"{operation.lower()}, {count} blocks of {kind}".replace("of mixed", "of mixed lengths")
                if options.filter in name:
                    yield name, operation, kind, count


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="no lists of 120,000 blocks, fewer rounds")
    parser.add_argument("--private", action="store_true", help="memory that is not moved into files")
    parser.add_argument("--summary", action="store_true")
    parser.add_argument("--csv")
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--memory-limit", type=int, default=1000, metavar="MB", help="of one process (default 1000)")
    parser.add_argument("filter", nargs="?", default="")
    options = parser.parse_args()
    rounds = options.rounds or (5 if options.quick else 7)
    print(f"{'':34}" + "".join(f"{each:>18}" for each in
                               ("prepare", "post CPU", "post", "whole", "CPU", "fresh", "metadata")), flush=True)
    results, left_out, pairs, prepared = {}, [], {}, None
    for name, operation, kind, count in rows(options):
        lengths = lengths_of(kind, count)
        length = int(lengths.sum() * SPREAD) + (1 << 20)
        if length > options.memory_limit << 20:
            left_out.append(f"{name} ({length >> 20} MB)")
            continue
        if prepared != (kind, count):
            for each in pairs.values():
                each.close()
            pairs = {backend: Pair(backend, options.private, length) for backend in ("UCX", "UCX_LAYOUT")}
            prepared = kind, count
        found = results[name] = measure_row(pairs, operation, lengths, rounds)
        cells = [f"{words(time_of(found, field))} {ratio(found, field):6.2f}" for field in FIELDS]
        cells.append("{} / {}".format(*(pairs[backend].metadata for backend in ("UCX_LAYOUT", "UCX"))))
        print(f"{name:34}" + "".join(f"{each:>18}" for each in cells), flush=True)
    for each in pairs.values():
        each.close()
    if left_out:
        print(f"left out, longer than --memory-limit: {', '.join(left_out)}")
    if options.csv:
        with open(options.csv, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(("row", "backend", "round", *(f"{field}_s" for field in FIELDS)))
            for name, found in results.items():
                for backend, taken in found.items():
                    for place, each in enumerate(taken):
                        writer.writerow((name, backend, place, *(f"{each[field]:.9f}" for field in FIELDS)))
    if options.summary and results:
        whole = {name: ratio(found, "whole") for name, found in results.items()}
        worst = min(whole, key=whole.get)
        fresh = {name: ratio(found, "fresh") for name, found in results.items()}
        worst_fresh = min(fresh, key=fresh.get)
        post_cpu = [ratio(found, "post_cpu") for found in results.values()]
        print(f"fresh lists: R {statistics.geometric_mean(fresh.values()):.2f}, "
              f"worst {fresh[worst_fresh]:.2f} ({worst_fresh})")
        print(f"nixl: {len(results)} rows, post CPU {statistics.geometric_mean(post_cpu):.2f}, "
              f"whole time {statistics.geometric_mean(whole.values()):.2f}, worst {whole[worst]:.2f} ({worst})")
    return 0 if results else 1


if __name__ == "__main__":
    sys.exit(main())
