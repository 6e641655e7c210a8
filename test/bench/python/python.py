#!/usr/bin/env python3
"""gather() and scatter() of the Python package beside NumPy, and torch where it is installed.

Each row is a way to pick bytes of an array. The sides are measured in turn, round by round; a ratio is the median over
the rounds of the time of the fastest other side divided by that of ucx_layout, so that more than 1 means that
ucx_layout is faster. Results are compared first. All sides write into an array that exists; arrays are in the caches if
they fit. One thread: torch gets one, too.

usage: python.py BUILD_DIR [--quick] [--summary] [--csv FILE] [--rounds N]
"""
import argparse
import csv
import math
import os
import statistics
import sys
import time

BATCH_SECONDS = 0.002


def rows(numpy, quick):
    """name, array to pick from, its view or None, block table or None."""
    for size in (1 << 16, 1 << 20) if quick else (1 << 12, 1 << 16, 1 << 20, 1 << 24):
        n = max(16, int(math.sqrt(size // 8) * 2))
        matrix = numpy.arange(n * n, dtype="f8").reshape(n, n)
        half = n // 2
        yield f"column, {size >> 10} KB matrix", matrix, matrix[:, 5]
        yield f"16 columns, {size >> 10} KB matrix", matrix, matrix[:, 8:24]
        yield f"tile of a quarter, {size >> 10} KB matrix", matrix, matrix[half // 2:half // 2 + half, :half]
        yield f"transposed, {size >> 10} KB matrix", matrix, matrix.T
        yield f"every second number, {size >> 10} KB", matrix.reshape(-1), matrix.reshape(-1)[::2]


def tables(numpy, quick):
    for length, count in ((512, 1000), (4096, 1000)) if quick else ((512, 1000), (512, 20000), (4096, 1000),
                                                                     (4096, 10000), (65536, 500)):
        cache = numpy.arange(2 * count * length // 4, dtype="u4").reshape(2 * count, length // 4)
        yield f"{count} blocks of {length} B", cache, numpy.random.default_rng(1).permutation(2 * count)[:count]


def mean_of(call, number):
    begin = time.perf_counter()
    for _ in range(number):
        call()
    return (time.perf_counter() - begin) / number


def measure(sides, rounds):
    """Seconds of each side in each round."""
    numbers = {}
    for name, call in sides.items():
        call()
        numbers[name] = max(1, int(BATCH_SECONDS / max(1e-7, mean_of(call, 3))))
    return [{name: mean_of(call, numbers[name]) for name, call in sides.items()} for _ in range(rounds)]


def compare(sides, out, clear):
    """All sides leave the same bytes."""
    found = {}
    for name, call in sides.items():
        clear()
        call()
        found[name] = out.tobytes()
    if len(set(found.values())) != 1:
        sys.exit(f"bench python: {', '.join(found)} differ")


def sides_of_view(ul, numpy, torch, view):
    out, back = numpy.empty(view.shape, view.dtype), numpy.empty(view.shape, view.dtype)
    numpy.copyto(back, view)
    gather = {"ucx_layout": lambda: ul.gather(view, out), "copyto": lambda: numpy.copyto(out, view)}
    scatter = {"ucx_layout": lambda: ul.scatter(back, view), "copyto": lambda: numpy.copyto(view, back)}
    if torch:
        tensor, target, source = torch.from_numpy(view), torch.from_numpy(out), torch.from_numpy(back)
        gather["torch copy_"] = lambda: target.copy_(tensor)
        scatter["torch copy_"] = lambda: tensor.copy_(source)
    return ("gather", gather, out), ("scatter", scatter, view)


def sides_of_table(ul, numpy, torch, cache, table):
    layout = ul.blocks(table, cache.strides[0], unit=cache.strides[0])
    out, back = numpy.empty((len(table), cache.shape[1]), cache.dtype), cache[table]
    gather = {"ucx_layout": lambda: ul.gather(cache, out, layout=layout),
              "take": lambda: numpy.take(cache, table, 0, out, "clip")}
    scatter = {"ucx_layout": lambda: ul.scatter(back, cache, layout=layout),
               "index": lambda: cache.__setitem__(table, back)}
    if torch:
        tensor, index = torch.from_numpy(cache.view("i4")), torch.from_numpy(table)
        target, source = torch.from_numpy(out.view("i4")), torch.from_numpy(back.view("i4"))
        gather["torch index_select"] = lambda: torch.index_select(tensor, 0, index, out=target)
        scatter["torch index_copy_"] = lambda: tensor.index_copy_(0, index, source)
    return ("gather", gather, out), ("scatter", scatter, cache)


def plot(found, file):
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    figure, axes = pyplot.subplots(figsize=(9, 1.5 + 0.25 * len(found)))
    for other in dict.fromkeys(row[4] for row in found):
        own = [(place, row[3]) for place, row in enumerate(found) if row[4] == other]
        axes.barh(*zip(*own), label=other)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_yticks(range(len(found)), [row[0] for row in found], fontsize=7)
    axes.set_xscale("log")
    axes.set_xlabel("time of the fastest other / time of ucx_layout")
    axes.invert_yaxis()
    axes.legend(title="the fastest other", fontsize=7)
    figure.tight_layout()
    figure.savefig(file, dpi=110)
    print(file)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", help="folder of the build")
    parser.add_argument("--quick", action="store_true", help="fewer rows and rounds")
    parser.add_argument("--summary", action="store_true", help="end with the geometric mean and the worst row")
    parser.add_argument("--rounds", type=int, metavar="N", help="rounds of each row (default: 15, quick 5)")
    parser.add_argument("--csv", metavar="FILE", help="keep the figures")
    parser.add_argument("--plot", metavar="FILE", help="draw them (.svg, .png, .pdf; needs matplotlib)")
    options = parser.parse_args()
    sys.path[:0] = [os.path.join(options.build, "install", "lib",
                                 f"python{sys.version_info.major}.{sys.version_info.minor}", "site-packages")]
    import numpy
    import ucx_layout as ul
    try:
        import torch
        torch.set_num_threads(1)
    except ImportError:
        torch = None
    fresh = [numpy.random.default_rng(seed).permutation(200000)[:100000] for seed in range(15)]
    made = statistics.median(mean_of(lambda table=table: ul.blocks(table, 512, unit=512), 1) for table in fresh)
    print(f"block table of 100000 entries, each time another one: {made * 1e3:.1f} ms to make; "
          f"NumPy {numpy.__version__}, torch {torch.__version__ if torch else 'is not installed'}")
    print(f"{'row':44} {'ucx_layout us':>14} {'best other us':>14} {'ratio':>6}  best other")
    found = []
    rounds = options.rounds or (5 if options.quick else 15)
    every = [(name, sides_of_view(ul, numpy, torch, view)) for name, _, view in rows(numpy, options.quick)]
    every += [(name, sides_of_table(ul, numpy, torch, cache, table)) for name, cache, table in
              tables(numpy, options.quick)]
    for name, directions in every:
        for direction, sides, out in directions:
            compare(sides, out, lambda array=out: array.fill(0) if direction == "gather" else None)
            measured = measure(sides, rounds)
            others = [side for side in sides if side != "ucx_layout"]
            ratio = statistics.median(min(each[side] for side in others) / each["ucx_layout"] for each in measured)
            times = {side: statistics.median(each[side] for each in measured) for side in sides}
            best = min(others, key=times.get)
            row = f"{direction}: {name}"
            found.append((row, times["ucx_layout"] * 1e6, times[best] * 1e6, ratio, best))
            print(f"{row:44} {found[-1][1]:14.2f} {found[-1][2]:14.2f} {ratio:6.2f}  {best}", flush=True)
    if options.csv:
        with open(options.csv, "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("row", "ucx_layout_us", "best_other_us", "ratio", "best_other"), *found])
    if options.plot:
        plot(found, options.plot)
    if options.summary:
        worst = min(found, key=lambda row: row[3])
        mean = statistics.geometric_mean(row[3] for row in found)
        print(f"python: geomean {mean:.2f} of {len(found)} rows, worst {worst[3]:.2f} ({worst[0]})")


if __name__ == "__main__":
    main()
