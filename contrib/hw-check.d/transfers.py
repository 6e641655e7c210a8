"""Runs the tool on both hosts, on host and DPU, or several times on one host."""
import json
import os
import re
import subprocess
import time

import commands
from claims import DIFFERS, Evidence, OK, SKIPPED
from messages import complaint, last_line, syndromes
from runs import BY_CARD, BY_HOST, DPU_SERVER, PLAIN, RC, Run, STRIDED

TOOL = "ucx_layout_perftest"
COPIED = re.compile(r"window +bytes copied by the CPU of this side: (\d+)")
NO_MEMORY = re.compile(r"no device gives \d+ bytes of its memory")
ATOMIC_TESTS = ("ucp_add", "ucp_fadd", "ucp_swap", "ucp_cswap")
FIRST_PATIENCE = 600  # seconds that one side waits for the other to be started
PATIENCE = 60         # and for its next run


def installed(options):
    env = dict(os.environ)
    install = os.path.join(options.build, "install")
    env["PATH"] = os.path.join(install, "bin") + os.pathsep + env["PATH"]
    env["LD_LIBRARY_PATH"] = os.path.join(install, "lib") + os.pathsep + env.get("LD_LIBRARY_PATH", "")
    return env


def environment(options, run):
    """What both sides set. The two may be on one host, where shared memory would be used otherwise."""
    env = installed(options)
    env.update(UCX_TLS=run.tls, UCX_NET_DEVICES=f"{options.device}:{options.port_of_device}",
               UCX_LAYOUT_KEYS_SAME_HOST="always", UCX_LAYOUT_KEYS_WINDOWS="keys")
    env.update(run.variables)
    return env


class Transfers:
    def __init__(self, options, report):
        self._options = options
        self._report = report
        self._side = report.heading["side"]

    def _add(self, run, result, note, figures=None, output=""):
        if result == DIFFERS and run.needs and self._report.capabilities.used(run.needs) == "no":
            result, note = SKIPPED, f"not used: {run.needs} ({note})"
        if result == DIFFERS and NO_MEMORY.search(output):
            result, note = SKIPPED, "the device gives none of its memory"
        self._report.add(Evidence("run", run.name, run.about, result, note, figures or {}, syndromes(output)))

    def _judge(self, run, ended, copied, note="", figures=None):
        if ended.returncode != 0:
            self._add(run, DIFFERS, complaint(ended.stderr or ended.stdout), output=ended.stdout + ended.stderr)
        elif self._side in run.zero_copy and copied != 0:
            self._add(run, DIFFERS, f"{copied} bytes copied by the CPU", figures)
        else:
            self._add(run, OK, f"copied {copied}; {note}".rstrip("; ") if copied is not None else note, figures)

    def serve(self, runs):
        for number, run in enumerate(runs):
            command = [TOOL, "-p", str(self._options.tcp_port + number)]
            env = environment(self._options, run)
            env.update(run.server_variables)
            try:
                ended = commands.run(command, FIRST_PATIENCE if number == 0 else 4 * PATIENCE, env=env)
            except subprocess.TimeoutExpired:
                self._add(run, DIFFERS, "the other side did not come, or did not end")
                continue
            copied = COPIED.search(ended.stdout)
            figures = {"copied_bytes": int(copied[1])} if copied else {}
            self._judge(run, ended, figures.get("copied_bytes"), figures=figures)

    def serve_dpu(self, runs):
        """Two servers for each run, on ports that follow each other: the peer's, and that of the memory's owner."""
        for number, run in enumerate(runs):
            servers = [subprocess.Popen([TOOL, "-p", str(self._options.tcp_port + 2 * number + part)],
                                        env=environment(self._options, run), stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True) for part in range(2)]
            deadline = time.monotonic() + (FIRST_PATIENCE if number == 0 else 4 * PATIENCE)
            outputs = []
            for server in servers:
                try:
                    outputs.append(server.communicate(timeout=max(deadline - time.monotonic(), 1))[0])
                except subprocess.TimeoutExpired:
                    commands.end(server)
                    outputs.append("the DPU did not come, or did not end")
            failed = next((output for server, output in zip(servers, outputs) if server.returncode != 0), None)
            copied = [int(found) for output in outputs for found in COPIED.findall(output)]
            figures = {"copied_bytes": sum(copied)} if copied else {}
            if failed is not None:
                self._add(run, DIFFERS, complaint(failed), output="\n".join(outputs))
            elif DPU_SERVER in run.zero_copy and (not copied or max(copied) != 0):
                self._add(run, DIFFERS, f"{max(copied, default=None)} bytes copied by the CPU", figures)
            else:
                self._add(run, OK, f"copied {sum(copied)}" if copied else "", figures)

    def _connect(self, number, run):
        """Tries again while the server is not there yet: it starts a process for each run."""
        options = self._options
        command = [TOOL, options.client, "-p", str(options.tcp_port + number), "-t", *run.arguments, "--validate",
                   "--json", "--time", "0.1" if options.quick else "1"]
        if options.dpu_client:
            port = options.tcp_port + 2 * number
            command = [TOOL, options.dpu_client, "-p", str(port), "--owner", f"{options.dpu_client}:{port + 1}",
                       *command[4:]]
        deadline = time.monotonic() + (FIRST_PATIENCE if number == 0 else 4 * PATIENCE)
        while True:
            ended = self._execute(run, command, environment(options, run))
            if (ended is None or ended.returncode == 0 or "cannot connect" not in ended.stderr or
                    time.monotonic() > deadline):
                return ended

    def _execute(self, run, command, env):
        """The ended process, or None, which is noted, if it did not end in time."""
        try:
            return commands.run(command, 4 * PATIENCE, env=env)
        except subprocess.TimeoutExpired:
            self._add(run, DIFFERS, "did not end")
            return None

    def call(self, runs):
        medians = {}
        for number, run in enumerate(runs):
            ended = self._connect(number, run)
            if ended is None:
                continue
            if ended.returncode != 0:
                self._judge(run, ended, None)
                continue
            text, protocols = split_protocols(ended.stdout)
            results = json.loads(text)["runs"][-1]["results"]
            if run.arguments[0] == "xgvmi_map":
                self._judge(run, ended, None,
                            "; ".join(f"{step['method']} {step['median_us']:.1f} us" for step in results),
                            {step["method"]: step["median_us"] for step in results})
                continue
            result = results[-1]
            if result["validated_messages"] == 0:
                self._add(run, DIFFERS, "nothing was checked")
                continue
            medians[run.name] = result["median_us"]
            figures = figures_of(result)
            note = "; ".join(self._notes(run, result, medians))
            if protocols:
                figures["protocols"] = protocols
            self._judge(run, ended, result.get("copied_bytes"), note, figures)

    @staticmethod
    def _notes(run, result, medians):
        yield f"{result['median_us']:.3f} us"
        yield (f"{result['median_rate'] / 1e6:.2f} million/s" if run.arguments[0] in ATOMIC_TESTS
               else f"{result['median_bytes_per_s'] / 1e9:.2f} GB/s")
        if run.versus in medians:
            yield f"{medians[run.versus] / result['median_us']:.2f} times as fast as {run.versus}"
        if "against packing" in run.name:
            yield f"{result['speed_against_first']:.2f} times as fast as packing by hand"

    def contend(self):
        """Several processes of this host add to one variable, in host memory and in the card's."""
        for memory in ("host", "rdma"):
            where = "host memory" if memory == "host" else "the card"
            run = Run("~5 ~39", f"4 processes add, variable in {where}", ())
            command = [TOOL, "--self", "-t", "contended_fadd", "-m", memory, "--processes", "4", "--time", "1"]
            ended = self._execute(run, command, environment(self._options, run))
            if ended is None:
                continue
            total = re.search(r"^.*total.*$", ended.stdout, re.M | re.I)
            self._judge(run, ended, None, " ".join((total[0] if total else last_line(ended.stdout)).split()))

    def compare_same_host(self):
        """Two processes of this host move plain memory, then windows by the card and by what the host has."""
        for name, same_host, arguments in (("put on one host, plain memory", "always", (*PLAIN, "1M")),
                                           (BY_CARD, "always", ("-l", STRIDED)),
                                           (BY_HOST, "never", ("-l", STRIDED))):
            run = Run("~43", name, (), RC, variables=(("UCX_LAYOUT_KEYS_SAME_HOST", same_host),))
            env = environment(self._options, run)
            if same_host == "never":
                del env["UCX_TLS"]
            ended = self._execute(run, [TOOL, "--self", "-t", "ucp_put_bw", *arguments, "--validate", "--json"], env)
            if ended is None:
                continue
            if ended.returncode != 0:
                self._judge(run, ended, None)
                continue
            result = json.loads(ended.stdout)["runs"][-1]["results"][-1]
            self._judge(run, ended, None, "; ".join(self._notes(Run("", name, ("ucp_put_bw",)), result, {})),
                        figures_of(result))


def figures_of(result):
    names = ("median_us", "median_rate", "median_bytes_per_s", "copied_bytes", "validated_messages",
             "speed_against_first")
    return {name: result[name] for name in names if result.get(name) is not None}


def split_protocols(text):
    """The JSON document, and what UCX_PROTO_INFO printed between its lines: tables of ranges of lengths, protocols and
    lanes. The ranges are left out: UCX measures them anew in each process."""
    document, protocols = [], []
    for line in text.splitlines():
        if not line.startswith("["):
            document.append(line)
        elif len(cells := [cell.strip() for cell in line.split("|")[1:-1]]) in (2, 3):
            protocols.append(" ".join(cells[1:]))
    return "\n".join(document), protocols
