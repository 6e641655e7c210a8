#!/usr/bin/env python3
"""MPI datatypes with and without libmpi_layout: the same unmodified program, two processes on this host, or four.

Messages of all patterns go by ping-pong and by exchange; some patterns also by collective calls (alltoallw with the
peer, neighbor_alltoallw, gatherv to the first process, bcast) and by one-sided ones (put, get) with the datatype on
both sides.

Every row is measured with and without the library in turn, round by round; its ratio is the median over the rounds of
the time without divided by the time with it. So more than 1 means that the library is faster. Bytes are compared
first.
Data are live: the sender writes one byte of each cache line before each message, and the receiver reads one of each
after it, inside the time; `own` is what that takes without a message, and `trip` how long a line of the caches takes to
the other core and back. With --same-data nobody does.
A row below 0.97 is measured again, up to two times, before it is reported; its figures are then of all rounds.
The processes are started several times, because a pair keeps by chance what its memory is like: two pairs without the
library differ by some percent, and the one that was started first is often the slower one. So they take turns in that.

With more than two processes, pairs of them send at the same time; with several buffers, each message finds its memory
out of the caches, as in a program that computes between messages.

usage: mpi.py BUILD_DIR [OPTIONS], see --help
"""
import argparse
import csv
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

# name: (MPI, launcher, how the launcher binds, its options)
WAYS = {
    "openmpi-ucx": ("openmpi", "mpirun.openmpi", "--bind-to",
                    ["--oversubscribe", "--mca", "pml", "ucx", "--mca", "pml_ucx_tls", "any",
                     "--mca", "pml_ucx_devices", "any", "--mca", "osc", "ucx"]),
    "openmpi-sm": ("openmpi", "mpirun.openmpi", "--bind-to",
                   ["--oversubscribe", "--mca", "pml", "ob1", "--mca", "btl", "self,sm"]),
    "mpich": ("mpich", "mpiexec.mpich", "-bind-to", []),
}
# A round is many short batches, of which the fastest one counts.
BATCH_SECONDS = 0.00025
MAX_BATCHES = 40
ROUND_SECONDS = 0.02
KINDS = ("ping-pong", "exchange")
MORE_KINDS = ("alltoallw", "neighbor", "gatherv", "bcast", "put", "get")
# The patterns of which these are measured, too.
SAMPLES = ("halo3d x", "panel of 16", "nested 64 KB", "64 of 128, 64 KB", "64 of 128, 1 MB", "4 KB of 8 KB, 1 MB",
           "contiguous, 64 KB", "contiguous, 1 MB")
# Open MPI 5.0.7 ends with a signal in one-sided operations over ob1, without the library, too, though not each time.
LEFT_OUT = {"openmpi-sm": ("put", "get")}
SLOWER = 0.97  # measured again
AGAIN = 2
LONG = 512 << 10
FIELDS = ("mpi", "kind", "family", "pattern", "packed", "without_us", "with_us", "ratio", "own_us", "trip_ns")


def launch_command(way, processes):
    """Each process has a core of its own where there are enough: what others do on a machine moves processes about."""
    _, launcher, bind, options = WAYS[way]
    return [launcher, "-n", str(processes), bind, "core" if (os.cpu_count() or 1) >= processes else "none", *options]


class Job:
    """One mpirun, which waits for commands."""

    def __init__(self, build, folder, way, has_heap, with_library, options):
        mpi = WAYS[way][0]
        self.prefix = os.path.join(folder, f"{way}-{'with' if with_library else 'without'}")
        ranks = range(options.processes)
        for end in (*ranks, "out"):
            os.mkfifo(f"{self.prefix}.{end}")
        env = dict(os.environ)
        if os.geteuid() == 0:
            env.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        preloaded = [f"libmpi_layout_{mpi}.so"] if with_library or options.against == "library" else []
        if with_library:
            env.update(each.split("=", 1) for each in options.set)
            preloaded = (["libucx_layout_heap.so"] if has_heap else []) + preloaded
        if preloaded:
            env["LD_PRELOAD"] = ":".join(os.path.join(build, "install", "lib", name) for name in preloaded)
        self.process = subprocess.Popen([*launch_command(way, options.processes),
                                         os.path.join(build, f"bench_mpi_exchange_{mpi}"), self.prefix, options.data,
                                         str(options.buffers)],
                                        env=env, stdin=subprocess.DEVNULL)
        self.commands = [open(f"{self.prefix}.{rank}", "w", encoding="ascii") for rank in ranks]
        self.answers = open(f"{self.prefix}.out", encoding="ascii")

    def ask(self, command, index=0, number=0, batches=1):
        for pipe in self.commands:
            pipe.write(f"{command} {index} {number} {batches}\n")
            pipe.flush()
        answer = self.answers.readline().strip()
        if not answer:
            sys.exit(f"bench mpi: {os.path.basename(self.prefix)} ended")
        return answer

    def rows(self):
        lines = [self.ask("list")]
        while lines[-1] != "end":
            lines.append(self.answers.readline().strip())
        return [line.split("\t") for line in lines[:-1]]

    def end(self):
        for pipe in self.commands:
            pipe.close()
        self.process.wait()


def measure_row(jobs, kind, index, options):
    """Seconds of each round, for each job."""
    sizes = []
    for job in jobs:
        one = max(min(float(job.ask(kind, index, 1, 3)) for _ in range(3)), 1e-7)
        number = max(1, int(BATCH_SECONDS / one))
        sizes.append((number, min(MAX_BATCHES, max(5, int(ROUND_SECONDS / one / number)))))
    return [[float(job.ask(kind, index, *size)) for job, size in zip(jobs, sizes)] for _ in range(options.rounds)]


def measure_calls(way, jobs, options):
    """What a call takes that is left to MPI and moves nothing."""
    for kind, name in (("call-named", "MPI_DOUBLE"), ("call-derived", "short vector")):
        rounds = [[float(job.ask(kind, 0, 10000, 20)) * 1e9 for job in jobs] for _ in range(options.rounds)]
        without, with_library = (statistics.median(ns) for ns in zip(*rounds))
        more = statistics.median(b - a for a, b in rounds)
        print(f"{way:12} call left to MPI, {name}: {without:.1f} ns without, {with_library:.1f} with, {more:+.1f} ns")


def start_jobs(build, folder, way, has_heap, launch, options):
    """The one without and the one with the library; the second launch starts the latter first, and so on."""
    jobs = {}
    for with_library in (False, True) if launch % 2 == 0 else (True, False):
        jobs[with_library] = Job(build, folder, way, has_heap, with_library, options)
    return [jobs[False], jobs[True]]


def row_of(way, kind, listed, rounds, own, trip):
    family, packed, name = listed
    times = (statistics.median(seconds) * 1e6 for seconds in zip(*rounds))
    return dict(zip(FIELDS, (way, kind, family, name, int(packed), *times, statistics.median(a / b for a, b in rounds),
                             own * 1e6, trip * 1e9)))


def print_row(row, again):
    print(f"{row['mpi']:16} {row['kind']:10} {row['pattern']:22} {row['packed']:8} B {row['without_us']:10.2f} us "
          f"{row['with_us']:10.2f} us {row['ratio']:8.2f}   own {row['own_us']:8.2f} us, trip {row['trip_ns']:4.0f} ns"
          + (f", again {again}" if again else ""), flush=True)


def is_wanted(name, kind, options):
    return ((not options.only or any(text in name for text in options.only))
            and (not options.kind or kind in options.kind) and (kind in KINDS or name in SAMPLES))


def measure_launch(build, way, has_heap, launch, wanted, rounds, options):
    """Adds the rounds of one launch to those of each row: (index, kind). Returns the rows by the same keys, of all
    rounds so far."""
    rows, title = {}, way + ("+heap" if has_heap else "")
    with tempfile.TemporaryDirectory() as folder:
        jobs = start_jobs(build, folder, way, has_heap, launch, options)
        if options.calls and launch == 0:
            measure_calls(title, jobs, options)
        for index, listed in enumerate([] if options.calls else jobs[0].rows()):
            kinds = [kind for kind in KINDS + MORE_KINDS
                     if is_wanted(listed[2], kind, options) and (wanted is None or (index, kind) in wanted)
                     and kind not in LEFT_OUT.get(way, ())]
            if not kinds:
                continue
            if any(job.ask("check", index) != "right" for job in jobs):
                sys.exit(f"bench mpi: {title}: wrong bytes in {listed[2]}")
            trip = float(jobs[0].ask("trip", index, 200, 5))
            own = float(jobs[0].ask("own", index, 10, 5))
            for kind in kinds:
                of_row = rounds.setdefault((index, kind), [])
                of_row += measure_row(jobs, kind, index, options)
                rows[index, kind] = row_of(title, kind, listed, of_row, own, trip)
        for job in jobs:
            job.end()
    return rows


def measure_way(build, way, has_heap, options):
    rounds, rows, again = {}, {}, {}
    for launch in range(options.launches):
        rows = measure_launch(build, way, has_heap, launch, None, rounds, options)
    for turn in range(AGAIN):
        slower = {key for key, row in rows.items() if row["ratio"] < SLOWER}
        if not slower:
            break
        again.update((key, turn + 1) for key in slower)
        for launch in range(options.launches):
            rows.update(measure_launch(build, way, has_heap, launch, slower, rounds, options))
    for key, row in rows.items():
        print_row(row, again.get(key))
    return list(rows.values())


def measure(build, options):
    rows = []
    for way, (mpi, launcher, _, _) in WAYS.items():
        if options.by and options.by != way:
            continue
        program = os.path.join(build, f"bench_mpi_exchange_{mpi}")
        if not os.path.exists(program) or shutil.which(launcher) is None:
            print(f"bench mpi: without {way}: there is no {program}", file=sys.stderr)
            continue
        for has_heap in {"no": (False,), "yes": (True,), "both": (False, True)}[options.heap]:
            rows += measure_way(build, way, has_heap, options)
    return rows


def mean_of(ratios, words):
    return f"{statistics.geometric_mean(ratios):.2f} of {len(ratios)} {words}" if ratios else f"no {words}"


def summary(rows, data):
    """Ends with a line for each MPI."""
    ways = {way: [row for row in rows if row["mpi"] == way] for way in dict.fromkeys(row["mpi"] for row in rows)}
    print()
    for way, own in ways.items():
        print(f"{way}: {data}, "
              + ", ".join(mean_of([row["ratio"] for row in own if chosen(row)], words) for words, chosen in (
                  ("nested and panel rows", lambda row: row["family"] in ("nested", "panel")),
                  ("rows of messages", lambda row: row["kind"] in KINDS),
                  ("collective rows", lambda row: row["kind"] in MORE_KINDS[:4]),
                  ("one-sided rows", lambda row: row["kind"] in MORE_KINDS[4:])))
              + f", {len([row for row in own if row['ratio'] < SLOWER])} below {SLOWER}")
    for way, kinds in LEFT_OUT.items():
        if any(title.startswith(way) for title in ways):
            print(f"{way}: left out: {', '.join(kinds)}, in which this MPI alone crashes")
    for way, own in ways.items():
        worst = min(own, key=lambda row: row["ratio"])
        print(f"{way}: geomean {mean_of([row['ratio'] for row in own], 'rows')}, "
              + mean_of([row["ratio"] for row in own if row["packed"] >= LONG], "rows of 512 KB and more") + ", "
              + mean_of([row["ratio"] for row in own if row["family"] == "contiguous"], "contiguous rows")
              + f", worst {worst['ratio']:.2f} ({worst['kind']} {worst['pattern']})")


def conditions(options):
    """Of a summary, as far as they are not the usual ones; what the data are is always said."""
    return ", ".join([{"live": "live data", "same": "the same data"}[options.data]]
                     + ([f"{options.buffers} buffers in turn"] if options.buffers > 1 else [])
                     + ([f"{options.processes} processes"] if options.processes > 2 else []))


def count(text):
    number = int(text)
    if not 1 <= number <= 1024:
        raise argparse.ArgumentTypeError(f"{number} is not in 1 to 1024")
    return number


def plot(rows, prefix):
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    for kind in dict.fromkeys(row["kind"] for row in rows):
        own = [row for row in rows if row["kind"] == kind]
        names, ways = list(dict.fromkeys(row["pattern"] for row in own)), list(dict.fromkeys(row["mpi"] for row in own))
        figure, axes = pyplot.subplots(figsize=(9, 1.5 + 0.3 * len(names)))
        height = 0.85 / len(ways)
        for number, way in enumerate(ways):
            ratios = {row["pattern"]: row["ratio"] for row in own if row["mpi"] == way}
            axes.barh([i + number * height for i in range(len(names))], [ratios.get(name, 1) for name in names], height,
                      label=way)
        axes.axvline(1, color="black", linewidth=0.8)
        axes.set_yticks([i + 0.4 for i in range(len(names))], names, fontsize=7)
        axes.set_xscale("log")
        axes.set_xlabel("time without the library / time with it")
        axes.set_title(kind)
        axes.invert_yaxis()
        axes.legend(fontsize=7)
        figure.tight_layout()
        figure.savefig(f"{prefix}-{kind}.png", dpi=110)
        print(f"{prefix}-{kind}.png")


def main():
    parser = argparse.ArgumentParser(prog="bench mpi")
    parser.add_argument("build", help=argparse.SUPPRESS)
    parser.add_argument("--only", action="append", metavar="TEXT", help="only patterns whose name contains TEXT")
    parser.add_argument("--by", choices=WAYS, help="only this MPI")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE",
                        help="an environment variable of the processes with the library")
    parser.add_argument("--kind", action="append", choices=(*KINDS, *MORE_KINDS), help="only this way to move them")
    parser.add_argument("--heap", nargs="?", const="yes", default="no", choices=("yes", "no", "both"),
                        help="with libucx_layout_heap, too, where the library is; both: once without and once with it")
    parser.add_argument("--against", choices=("mpi", "library"), default="mpi",
                        help="what the side without runs: MPI alone (mpi), or libmpi_layout without the options of "
                             "--set and --heap")
    parser.add_argument("--launches", type=int, default=4, metavar="N", help="how often the processes are started")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="rounds of every row in a launch")
    parser.add_argument("--quick", action="store_true", help="one launch")
    parser.add_argument("--calls", action="store_true",
                        help="instead measure calls that move nothing and are left to MPI")
    parser.add_argument("--same-data", dest="data", action="store_const", const="same", default="live",
                        help="nobody writes the memory before a message or reads it after it")
    parser.add_argument("--buffers", type=count, default=1, metavar="N", help="so many buffers in turn (1)")
    parser.add_argument("--processes", type=int, choices=(2, 4), default=2,
                        help="pairs send at the same time (2)")
    parser.add_argument("--summary", action="store_true", help="end with the geometric means and the worst rows")
    parser.add_argument("--csv", metavar="FILE", help="write the figures as CSV")
    parser.add_argument("--json", metavar="FILE", help="write the figures as JSON")
    parser.add_argument("--plot", metavar="PREFIX", help="draw PREFIX-KIND.png for each way to move them")
    options = parser.parse_args()
    if options.quick or options.calls:
        options.launches = 1
    rows = measure(options.build, options)
    if not rows and not options.calls:
        sys.exit("bench mpi: nothing was measured")
    if options.summary and rows:
        summary(rows, conditions(options))
    if options.csv:
        with open(options.csv, "w", newline="", encoding="utf-8") as file:
            lines = csv.DictWriter(file, FIELDS, lineterminator="\n")
            lines.writeheader()
            lines.writerows(rows)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)
    if options.plot:
        plot(rows, options.plot)


if __name__ == "__main__":
    main()
