"""The model's tables as text, CSV and JSON."""
import csv
import dataclasses
import json

from costs import REFERENCE, SCHEMES, Refused
from study import Row, labels


def size_name(size):
    for unit, name in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")):
        if size >= unit:
            return f"{size / unit:g} {name}"
    return f"{size} B"


def aligned(table):
    """Columns as wide as they have to be; the first one to the left."""
    widths = [max(len(line[i]) for line in table) for i in range(len(table[0]))]
    return "\n".join("  ".join([line[0].ljust(widths[0])] +
                               [cell.rjust(width) for cell, width in zip(line[1:], widths[1:])]).rstrip()
                     for line in table)


def of_rows(rows):
    """A line for each message size. The ratio and the gains are about the reference."""
    schemes = list(dict.fromkeys(row.scheme for row in rows))
    pools = [scheme for scheme in schemes if SCHEMES[scheme].is_pool]
    reference = [scheme for scheme in schemes if scheme == REFERENCE]
    lines = [[""] + ["us"] * len(schemes) + ["of " + SCHEMES[scheme].label for scheme in reference] +
             ["faster, %" for _ in pools] + ["saves, %" for _ in pools] + ["faster, %"],
             ["message"] + labels(schemes) + ["reg./comm." for _ in reference] + labels(pools) * 2 + ["published"]]
    for size in dict.fromkeys(row.message_bytes for row in rows):
        line = {row.scheme: row for row in rows if row.message_bytes == size}
        published = next((row.published_percent for row in line.values() if row.published_percent is not None), None)
        lines.append([size_name(size)] + [f"{line[scheme].time_us:.0f}" for scheme in schemes] +
                     [f"{line[scheme].ratio:.2f}" for scheme in reference] +
                     [f"{line[scheme].faster_percent:.1f}" for scheme in pools] +
                     [f"{line[scheme].saved_percent:.1f}" for scheme in pools] +
                     [f"{published:g}" if published is not None else "-"])
    return aligned(lines)


def of_scaling(scaled, sizes):
    """scaled: (nodes, gains by size)."""
    return aligned([["nodes"] + [f"{size_name(size)}, %" for size in sizes]] +
                   [[str(nodes)] + [f"{gain:.1f}" for gain in gains] for nodes, gains in scaled])


def of_sensitivity(made, sizes):
    return aligned([["input", "value"] + [f"{size_name(size)}, %" for size in sizes]] +
                   [[name, f"{value:g}"] + [f"{gain:.1f}" for gain in gains] for name, value, gains in made])


def of_comparison(made):
    return aligned([["message", "scheme", "by events, us", "closed form, us", "difference, %"]] +
                   [[size_name(size), SCHEMES[scheme].label, f"{events / 1e3:.1f}", f"{closed / 1e3:.1f}",
                     f"{100 * (closed / events - 1):+.1f}"] for size, scheme, events, closed in made])


def of_counts(made):
    """made: (scheme, its counts)."""
    return aligned([["scheme"] + list(made[0][1])] +
                   [[SCHEMES[scheme].label] + [str(count) for count in counted.values()] for scheme, counted in made])


def of_sources(table):
    values = {**{name: f"{len(curve.lengths)} lengths" for name, curve in table.curves.items()},
              **{name: f"{value:g}" for name, value in table.scalars.items()}}
    return "\n".join(f"{name} = {values[name]} {unit} ({kind}): {source}"
                     for name, unit, kind, source in table.sources)


def write_csv(path, rows):
    fields = [field.name for field in dataclasses.fields(Row)]
    try:
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, fields, lineterminator="\n")
            writer.writeheader()
            writer.writerows(dataclasses.asdict(row) for row in rows)
    except OSError as error:
        raise Refused(f"--csv: {error}") from None


def write_json(path, rows):
    try:
        with open(path, "w", encoding="utf-8") as file:
            json.dump([dataclasses.asdict(row) for row in rows], file, indent=1)
            file.write("\n")
    except OSError as error:
        raise Refused(f"--json: {error}") from None
