#!/usr/bin/env python3
"""Memory of a host that its DPU uses for one transfer (cross-GVMI): what mapping, exporting, importing and letting go
cost by five schemes, on a software device with two functions, beside what is published for a BlueField-3.

All schemes go through calls of stock UCP. Two of them are stock UCX's own, two of them its older ones, and two ours.
Times are modelled: to the time of this machine --times bf3 adds the published time of each command and each
registration. Commands and work requests are counted; those of the registration are not among them. A key is invalidated
when UCX deregisters, which is with its next call.

usage: xgvmi.py BUILD_DIR [--repeats N] [--csv FILE]
"""
import argparse
import csv
import dataclasses
import json
import os
import subprocess
import sys

LENGTHS = {16 << 10: "16 KB", 1 << 20: "1 MB", 64 << 20: "64 MB", 1 << 30: "1 GB"}

# BlueField-3, ns, by length as above.
REGISTRATION = (10125, 22296, 232007, 5823605)
DEREGISTRATION = (8230, 14073, 28635, 2585700)
UMEM = (165139, 320991, 5833211, 114294081)
KEY_CREATION = (216900, 217703, 217908, 218510)
UMEM_KEY_CREATION = (159000,) * 4
EXPORT = (138253, 147796, 147373, 201466)
KSM_EXPORT = (94778, 101124, 107185, 185765)
BIND = (1025, 1097, 1080, 1022)
INVALIDATION = (973, 1008, 1030, 1018)
KEY_DESTRUCTION = (150892, 151781, 151362, 151745)
ALIAS = (177270, 176509, 174919, 193689)
ALIAS_DESTRUCTION = (150699, 148548, 149765, 157555)


@dataclasses.dataclass
class Scheme:
    name: str
    buffers: str      # as in xgvmi_side
    published: tuple  # what it consists of
    variables: dict
    faults: tuple = ()


STOCK = {"UCX_LAYOUT_KEYS_ENABLE": "n"}
OURS = {"UCX_LAYOUT_KEYS_ENABLE": "y"}
POOL = (REGISTRATION, BIND, INVALIDATION, DEREGISTRATION)
SCHEMES = (
    # UCX falls back to this scheme when a key of another one cannot be opened to the other function.
    Scheme("umem + key, UCX", "fresh", (UMEM, UMEM_KEY_CREATION, ALIAS, ALIAS_DESTRUCTION), STOCK,
           ("command:allow_other_vhca_access,first=1",)),
    Scheme("MR + KSM, UCX", "fresh",
           (REGISTRATION, KEY_CREATION, KSM_EXPORT, KEY_DESTRUCTION, DEREGISTRATION, ALIAS, ALIAS_DESTRUCTION),
           STOCK | {"UCX_IB_XGVMI_UMR_ENABLE": "n"}),
    Scheme("UMR key per buffer, UCX's pool cold", "held",
           (REGISTRATION, KEY_CREATION, BIND, EXPORT, INVALIDATION, KEY_DESTRUCTION, DEREGISTRATION, ALIAS,
            ALIAS_DESTRUCTION), STOCK),
    Scheme("UMR keys, UCX's pool warm", "fresh", POOL, STOCK),
    Scheme("pool", "fresh", POOL, OURS),
    Scheme("pool and cache", "same", (), OURS),
)
FIELDS = ("scheme", "length", "published_us", "modelled_us", "registration_us", "export_us", "import_us", "commands",
          "registration_commands", "work_requests")


def measure(build, scheme, repeats):
    """The rows of one scheme."""
    rows = []
    for number, length in enumerate(LENGTHS):
        # Each length alone, so that the first buffer of each finds the pool as it was in the beginning.
        command = [os.path.join(build, "softhca-run"), "--functions", "2", "--times", "bf3"]
        for fault in scheme.faults:
            command += ["--fault", fault]
        command += ["--", os.path.join(build, "bench_xgvmi_side"), "--buffers", scheme.buffers, "--lengths",
                    str(length), "--repeats", str(repeats if length < 1 << 26 else max(repeats // 5, 4))]
        made = subprocess.run(command, env=dict(os.environ, **scheme.variables), check=True, capture_output=True,
                              text=True)
        cost = json.loads(made.stdout.splitlines()[-1])
        published = sum(part[number] for part in scheme.published) / 1000
        rows.append(dict(zip(FIELDS, (scheme.name, length, round(published, 1), cost["us"], cost["registration_us"],
                                      cost["export_us"], cost["import_us"] + cost["release_import_us"],
                                      cost["commands"], cost["registration_commands"], cost["work_requests"]))))
    return rows


def table(rows):
    lines = ["                                                        modelled, us              of export and import",
             "length  scheme                              published, us     all   export   import  commands  "
             "WQEs"]
    for length, name in LENGTHS.items():
        for row in (row for row in rows if row["length"] == length):
            published = f"{row['published_us']:.0f}" if row["published_us"] else "-"
            lines.append(f"{name:<7} {row['scheme']:<36}{published:>12} {row['modelled_us']:>8.0f} "
                         f"{row['export_us']:>8.1f} {row['import_us']:>8.1f} "
                         f"{row['commands'] - row['registration_commands']:>9.2f} {row['work_requests']:>5.2f}")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--csv")
    options = parser.parse_args()
    rows = [row for scheme in SCHEMES for row in measure(options.build, scheme, options.repeats)]
    print(table(rows))
    if options.csv:
        with open(options.csv, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, FIELDS)
            writer.writeheader()
            writer.writerows(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
