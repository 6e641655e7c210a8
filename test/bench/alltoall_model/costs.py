"""What the model is fed with: the table costs.csv, and costs of schemes that `contrib/dev bench xgvmi` measured.

A table has the columns name, bytes, value, unit, kind and source. A cost that depends on the length of a buffer has one
row for each length, in ns; other rows have no bytes. Between two lengths a cost is read off linearly, below the first
one it is that of the first one, beyond the last one the last two go on (as src/softhca/core/arena/cost.cc does).

    table = Table.read("costs.csv"); cost = SCHEMES["pool"].cost(table, 16 << 10); cost.host_map_ns
"""
import csv
import dataclasses
import json

import numpy

CURVES = ("registration", "deregistration", "umem", "key_creation", "umem_key_creation", "export", "ksm_export", "bind",
          "invalidation", "key_destruction", "alias", "alias_destruction")
# Smallest and largest value of each.
SCALARS = {"link_rate": (1e-3, 1e6), "network_efficiency": (1e-3, 1), "message_rate": (1e-6, 1e6),
           "read_latency": (0, 1e12), "message_latency": (0, 1e12), "service_message": (0, 1e12),
           "service_get": (0, 1e12), "host_message": (0, 1e12), "lookup": (0, 1e12), "card_commands": (0, 1e6)}
MAX_NS = 1e15
MAX_BYTES = 1 << 50
MAX_ROWS = 10000


class Refused(Exception):
    """An input that cannot be used; says which one and why."""


def number(text, name, least, most):
    """A finite number in that range."""
    try:
        value = float(text)
    except (TypeError, ValueError):
        raise Refused(f"{name}: '{text}' is not a number") from None
    if not least <= value <= most:  # also refuses what is not a number (nan)
        raise Refused(f"{name}: {text} is not in {least:g} .. {most:g}")
    return value


@dataclasses.dataclass(frozen=True)
class Curve:
    """A cost by length."""

    lengths: tuple
    values: tuple

    def at(self, length):
        if length <= self.lengths[-1] or len(self.lengths) == 1:
            return float(numpy.interp(length, self.lengths, self.values))
        slope = (self.values[-1] - self.values[-2]) / (self.lengths[-1] - self.lengths[-2])
        return max(0.0, self.values[-1] + slope * (length - self.lengths[-1]))


def curve_of(points, name):
    ordered = sorted(points)
    lengths = tuple(length for length, _ in ordered)
    if len(set(lengths)) != len(lengths):
        raise Refused(f"{name}: a length is there twice")
    return Curve(lengths, tuple(value for _, value in ordered))


def read_rows(path):
    """Rows of a CSV file with a header."""
    try:
        with open(path, newline="", encoding="utf-8") as file:
            rows = []
            for row in csv.DictReader(file):
                if len(rows) == MAX_ROWS:
                    raise Refused(f"{path}: more than {MAX_ROWS} rows")
                rows.append(row)
            return rows
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise Refused(f"{path}: {error}") from None


def read_text(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"{path}: {error}") from None


def parse_json(text, name):
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Refused(f"{name}: not JSON: {error}") from None


@dataclasses.dataclass(frozen=True)
class Table:
    """All inputs but those measured by schemes."""

    curves: dict
    scalars: dict
    sources: tuple  # (name, unit, kind, source), each name once

    @classmethod
    def read(cls, path):
        points, scalars, sources = {}, {}, {}
        for line, row in enumerate(read_rows(path), 2):
            name = row.get("name")
            if None in row or any(row.get(column) in (None, "") for column in ("value", "unit", "kind", "source")):
                raise Refused(f"{path}:{line}: a row needs name, bytes, value, unit, kind and source, and no more")
            if name in CURVES:
                length = number(row["bytes"], f"{path}:{line}: bytes", 0, MAX_BYTES)
                points.setdefault(name, []).append((length, number(row["value"], f"{path}:{line}: {name}", 0, MAX_NS)))
            elif name in SCALARS and name not in scalars:
                scalars[name] = number(row["value"], f"{path}:{line}: {name}", *SCALARS[name])
            else:
                raise Refused(f"{path}:{line}: '{name}' is there twice or is none of " + ", ".join((*CURVES, *SCALARS)))
            sources.setdefault(name, (name, row["unit"], row["kind"], row["source"]))
        missing = [name for name in (*CURVES, *SCALARS) if name not in sources]
        if missing:
            raise Refused(f"{path}: no {', '.join(missing)}")
        curves = {name: curve_of(values, f"{path}: {name}") for name, values in points.items()}
        return cls(curves, scalars, tuple(sources.values()))

    def changed(self, name, value):
        """The same with one scalar changed."""
        if name not in SCALARS:
            raise Refused(f"'{name}' is none of " + ", ".join(SCALARS))
        return dataclasses.replace(self, scalars={**self.scalars, name: number(value, name, *SCALARS[name])})


@dataclasses.dataclass(frozen=True)
class Cost:
    """Of one buffer, ns. Commands are also part of the time of the core that waits for them."""

    host_map: float = 0.0
    host_map_commands: float = 0.0
    host_unmap: float = 0.0
    host_unmap_commands: float = 0.0
    dpu_import: float = 0.0   # all of it commands
    dpu_release: float = 0.0

    @property
    def host_map_ns(self):
        return self.host_map + self.host_map_commands

    @property
    def host_unmap_ns(self):
        return self.host_unmap + self.host_unmap_commands


@dataclasses.dataclass(frozen=True)
class Scheme:
    """How memory is registered. The names in the fields are those of curves."""

    label: str
    benchmark: str                 # its name in `contrib/dev bench xgvmi`
    host_map: tuple = ()
    host_map_commands: tuple = ()
    host_unmap: tuple = ()
    host_unmap_commands: tuple = ()
    dpu_import: tuple = ()
    dpu_release: tuple = ()
    map_requests: int = 0          # binds
    unmap_requests: int = 0        # invalidations
    is_pool: bool = False          # keys, and so aliases, outlive buffers
    is_cache: bool = False         # so do registrations

    def cost(self, table, length):
        return Cost(**{field: sum(table.curves[name].at(length) for name in getattr(self, field))
                       for field in Cost.__dataclass_fields__})


ALIAS = {"dpu_import": ("alias",), "dpu_release": ("alias_destruction",)}
SCHEMES = {
    # What letting a umem and its key go costs is not published, and counts as nothing.
    "umem": Scheme("umem + key", "umem + key, UCX", host_map=("umem",), host_map_commands=("umem_key_creation",),
                   **ALIAS),
    "mr_ksm": Scheme("MR + KSM", "MR + KSM, UCX", host_map=("registration",),
                     host_map_commands=("key_creation", "ksm_export"), host_unmap=("deregistration",),
                     host_unmap_commands=("key_destruction",), **ALIAS),
    "umr": Scheme("UMR key per buffer", "UMR key per buffer, UCX's pool cold", host_map=("registration", "bind"),
                  host_map_commands=("key_creation", "export"), host_unmap=("invalidation", "deregistration"),
                  host_unmap_commands=("key_destruction",), map_requests=1, unmap_requests=1, **ALIAS),
    "pool": Scheme("pool", "pool", host_map=("registration", "bind"), host_unmap=("invalidation", "deregistration"),
                   map_requests=1, unmap_requests=1, is_pool=True),
    "pool_cache": Scheme("pool + cache", "pool and cache", is_pool=True, is_cache=True),
}
REFERENCE = "mr_ksm"
NOT_MODELLED = ("UMR keys, UCX's pool warm",)  # rows of the benchmark that no scheme stands for


class Measured:
    """Costs of schemes from `contrib/dev bench xgvmi --csv FILE`, or from the same rows as a JSON list.

    Export and import are taken from there. What registers the memory, and unmapping, keep their costs of the table: the
    benchmark has their times on this machine, not those of a card's driver.
    """

    NEEDED = ("scheme", "length", "export_us", "import_us")

    def __init__(self, path):
        rows = parse_json(read_text(path), path) if path.endswith(".json") else read_rows(path)
        if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
            raise Refused(f"{path}: not the rows of a table")
        names = {scheme.benchmark: name for name, scheme in SCHEMES.items()}
        exports, imports = {}, {}
        for line, row in enumerate(rows, 1):
            missing = [column for column in self.NEEDED if row.get(column) in (None, "")]
            if missing:
                raise Refused(f"{path}: row {line}: no {', '.join(missing)}")
            if row["scheme"] in NOT_MODELLED:
                continue
            if row["scheme"] not in names:
                raise Refused(f"{path}: row {line}: scheme '{row['scheme']}' is none of " + ", ".join(names))
            name = names[row["scheme"]]
            length = number(row["length"], f"{path}: row {line}: length", 1, MAX_BYTES)
            for column, points in (("export_us", exports), ("import_us", imports)):
                time_us = number(row[column], f"{path}: row {line}: {column}", 0, MAX_NS / 1e3)
                points.setdefault(name, []).append((length, time_us * 1e3))
        self._exports = {name: curve_of(points, f"{path}: {name}") for name, points in exports.items()}
        self._imports = {name: curve_of(points, f"{path}: {name}") for name, points in imports.items()}

    def cost(self, name, table, length):
        """The cost of that scheme; that of the table if the file has none."""
        of_table = SCHEMES[name].cost(table, length)
        if name not in self._exports:
            return of_table
        registered = table.curves["registration"].at(length) if "registration" in SCHEMES[name].host_map else 0.0
        export, imported = self._exports[name].at(length), self._imports[name].at(length)
        # Commands and the two parts of the DPU have the shares that they have in the table.
        commands = export * share(of_table.host_map_commands, of_table.host_map_ns - registered, 0)
        first = imported * share(of_table.dpu_import, of_table.dpu_import + of_table.dpu_release, 0.5)
        return dataclasses.replace(of_table, host_map=registered + export - commands, host_map_commands=commands,
                                   dpu_import=first, dpu_release=imported - first)


def share(part, whole, otherwise):
    return part / whole if whole else otherwise


def cost_of(name, table, length, measured=None):
    return measured.cost(name, table, length) if measured else SCHEMES[name].cost(table, length)


def is_whole(value):
    return isinstance(value, int) and not isinstance(value, bool)
