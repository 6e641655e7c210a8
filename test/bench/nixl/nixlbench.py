#!/usr/bin/env python3
"""nixlbench, NIXL's own benchmark, with the backend UCX_LAYOUT beside NIXL's own backend UCX: two processes of one
host, with the same UCX.

The backends take turns, round by round. A ratio is the median over the rounds of what UCX_LAYOUT reached divided by
what UCX reached, so that more than 1 means that UCX_LAYOUT is better. nixlbench compares all bytes.

What nixlbench measures is not what a program has: the blocks of a list lie one after the other, which UCX_LAYOUT finds,
so that it moves them as one; and the memory is not changed between two transfers. For scattered blocks and live data
there is nixl.py.

The columns:
    memory     what other processes reach of UCX_LAYOUT's memory: "private" (the kernel copies) or "move" (one pass)
    UCX, UCX_LAYOUT   GB/s
    R          their ratio, and the smallest one of a round
    post       us that posting a list takes: UCX / UCX_LAYOUT

usage: nixlbench.py PREFIX [--rounds N] [--summary] [FILTER]

PREFIX is where NIXL and nixlbench are installed, and NIXL_PLUGIN_DIR has UCX_LAYOUT: `contrib/dev bench nixlbench`
does that.
"""
import argparse
import os
import socket
import statistics
import subprocess
import sys

MEMORY = 256 << 20  # of a process
MOVED = 512 << 20  # bytes of one run, if that is between ITERATIONS
ITERATIONS = (16, 1024)
LIMIT_S = 300
ROWS = [(operation, count, length) for operation in ("WRITE", "READ")
        for count, length in ((1, 4096), (1, 65536), (100, 4096), (1000, 512), (1000, 4096), (1000, 65536),
                              (10000, 512), (10000, 4096))]
MEMORIES = {"private": "no", "move": "move"}


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def run(prefix, backend, memory, operation, count, length):
    """GB/s, and us for posting a list. The first process that binds the port is the initiator, which prints them."""
    iterations = max(ITERATIONS[0], min(ITERATIONS[1], MOVED // (count * length)))
    command = [os.path.join(prefix, "bin", "nixlbench"), "--backend", backend, "--op_type", operation,
               "--runtime_type", "ASIO", "--asio_address", "127.0.0.1", "--asio_port", str(free_port()),
               "--total_buffer_size", str(MEMORY), "--check_consistency"]
    for name, number in ("block_size", length), ("batch_size", count):
        command += [f"--start_{name}", str(number), f"--max_{name}", str(number)]
    command += ["--num_iter", str(iterations), "--warmup_iter", "16"]
    environment = os.environ | {"UCXL_SHARED_MEMORY": MEMORIES[memory],
                                "LD_LIBRARY_PATH": os.path.join(prefix, "lib")}
    if backend == "UCX":
        environment["NIXL_PLUGIN_DIR"] = os.path.join(prefix, "lib", "plugins")
    both = [subprocess.Popen(command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            for _ in range(2)]
    try:
        printed = [each.communicate(timeout=LIMIT_S)[0] for each in both]
    finally:
        for each in both:
            each.kill()
    figures = [fields for output in printed for fields in map(str.split, output.splitlines())
               if fields[:2] == [str(length), str(count)] and len(fields) == 10]
    if len(figures) != 1 or "failed" in "".join(printed) or any(each.returncode for each in both):
        raise SystemExit(f"nixlbench with {backend} failed:\n" + "\n".join(each[-2000:] for each in printed))
    return float(figures[0][2]), float(figures[0][6])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("prefix")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--summary", action="store_true")
    parser.add_argument("filter", nargs="?", default="")
    options = parser.parse_args()
    print(f"{'':30}{'memory':>9}{'UCX':>9}{'UCX_LAYOUT':>12}{'R':>17}{'post':>20}", flush=True)
    found = {}
    for operation, count, length in ROWS:
        name = f"{operation.lower()}, {count} of {length} B"
        if options.filter not in name:
            continue
        rounds = [[run(options.prefix, backend, memory, operation, count, length)
                   for backend, memory in (("UCX", "private"), *(("UCX_LAYOUT", memory) for memory in MEMORIES))]
                  for _ in range(options.rounds)]
        theirs, *sides = ([statistics.median(figure) for figure in zip(*side)] for side in zip(*rounds))
        for place, (memory, ours) in enumerate(zip(MEMORIES, sides), 1):
            ratios = [each[place][0] / each[0][0] for each in rounds]
            found[f"{name}, {memory}"] = ratio = statistics.median(ratios)
            least = f"({min(ratios):.2f})"
            print(f"{name:30}{memory:>9}{theirs[0]:9.2f}{ours[0]:12.2f}{ratio:8.2f}{least:>9}"
                  f"{theirs[1]:11.1f} /{ours[1]:6.1f}", flush=True)
    if options.summary and found:
        worst = min(found, key=found.get)
        print(f"nixlbench: {len(found)} rows, geomean {statistics.geometric_mean(found.values()):.2f}, "
              f"worst {found[worst]:.2f} ({worst})")
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main())
