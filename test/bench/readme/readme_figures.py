"""The table and the picture of README.md, from the medians that readme.py writes."""
import csv
import html
import math

# As README.md names them; layout of the benchmark, packed bytes.
ROWS = (
    ("16 matrix columns, 1 MB", "16 columns of 8192x1024", 1048576),
    ("KV cache, 20,000 blocks, 20 MB", "KV cache, 20000 of 1024", 20480000),
    ("nested records, 64 KB", "vector of struct", 65520),
    ("halo face of 128^3, 128 KB", "x face of 128^3", 131072),
    ("8 of every 32 bytes, 4 KB", "8 of 32", 4096),
)
WAY = "strided to strided"
# Of several methods that do the same, the fastest one counts.
OTHERS = (
    ("Open MPI", "#d55e00", ("openmpi type", "openmpi-ucx type")),
    ("MPICH", "#cc79a7", ("mpich type",)),
    ("UCP iov", "#56b4e9", ("ucp iov",)),
    ("packed by hand", "#009e73", ("ucp hand", "openmpi hand", "openmpi-ucx hand", "mpich hand")),
)
WINDOWS = ("window", "mapped")
METHODS = WINDOWS + tuple(method for _, _, methods in OTHERS for method in methods)


def figures_of(file):
    """Of each of ROWS: (name, microseconds of windows, microseconds in shared memory, {other: ratio}). The ratios
    are to the shorter of these two times."""
    measured = {}
    with open(file, newline="", encoding="utf-8") as lines:
        for line in csv.DictReader(lines):
            measured[line["layout"], int(line["packed"]), line["way"], line["method"]] = (
                float(line["microseconds"]), float(line["time_by_window"]))
    for name, layout, packed in ROWS:
        def of_method(method, key=(layout, packed, WAY)):
            return measured[(*key, method)]
        best = min(of_method(method)[1] for method in WINDOWS)
        ratios = {other: min(of_method(method)[1] for method in methods) / best for other, _, methods in OTHERS}
        yield name, of_method("window")[0], of_method("mapped")[0], ratios


def digits(number):
    """Two of them, at least."""
    return f"{number:.0f}" if number >= 99.5 else f"{number:.1f}" if number >= 9.95 else f"{number:.2f}"


def table_of(file):
    head = ["layout, packed size", "window, us", "shared, us", *(other for other, _, _ in OTHERS)]
    lines = ["| " + " | ".join(head) + " |", "|---|" + "--:|" * (len(head) - 1)]
    for name, window, mapped, ratios in figures_of(file):
        cells = [name, digits(window), digits(mapped), *(digits(ratios[other]) + " x" for other, _, _ in OTHERS)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


class chart:
    """Bars on a logarithmic axis, to the right of 1 or to the left of it. Light, so that it is readable on any page."""
    WIDTH, LEFT, RIGHT, TOP = 860, 260, 810, 96
    BAR, GAP = 11, 14

    def __init__(self, rows, least, most):
        self.rows = rows
        self.least, self.most = math.log10(least), math.log10(most)
        self.shapes = []

    def place(self, ratio):
        part = (math.log10(ratio) - self.least) / (self.most - self.least)
        return self.LEFT + part * (self.RIGHT - self.LEFT)

    def add_text(self, x, y, text, more=""):
        self.shapes.append(f'<text x="{x:.1f}" y="{y:.1f}"{more}>{html.escape(text)}</text>')

    def add_legend(self):
        x = self.LEFT
        for other, colour, _ in OTHERS:
            self.shapes.append(f'<rect x="{x}" y="56" width="11" height="11" fill="{colour}"/>')
            self.add_text(x + 16, 66, other)
            x += 30 + 7 * len(other)

    def add_axis(self, bottom):
        for tick in (0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500):
            if self.least <= math.log10(tick) <= self.most:
                x = self.place(tick)
                colour = "#24292f" if tick == 1 else "#d8dee4"
                self.shapes.append(f'<line x1="{x:.1f}" y1="{self.TOP - 6}" x2="{x:.1f}" y2="{bottom}" '
                                   f'stroke="{colour}"/>')
                self.add_text(x, self.TOP - 12, f"{tick} x", ' text-anchor="middle" font-size="10" fill="#57606a"')

    def add_rows(self):
        y = self.TOP
        for name, _, _, ratios in self.rows:
            middle = y + self.BAR * len(OTHERS) / 2 + 4
            self.add_text(self.LEFT - 40, middle, name, ' text-anchor="end"')
            for other, colour, _ in OTHERS:
                one, end = self.place(1), self.place(ratios[other])
                begin, width = min(one, end), max(abs(end - one), 1)
                self.shapes.append(f'<rect x="{begin:.1f}" y="{y}" width="{width:.1f}" height="{self.BAR - 1}" '
                                   f'fill="{colour}"><title>{html.escape(f"{name}: {other} {ratios[other]:.3g} x")}'
                                   "</title></rect>")
                label = digits(ratios[other])
                anchor = ("start", end + 3) if end >= one else ("end", end - 3)
                self.add_text(anchor[1], y + self.BAR - 2, label, f' text-anchor="{anchor[0]}" font-size="9"')
                y += self.BAR
            y += self.GAP

    def text(self):
        bottom = self.TOP + len(self.rows) * (self.BAR * len(OTHERS) + self.GAP)
        self.add_text(16, 26, "Time of others, as a multiple of the time with a window",
                      ' font-size="15" font-weight="bold"')
        self.add_text(16, 44, "to the right of 1 x: the window is faster; one message between two processes of one "
                              "host, live data, strided memory on both sides")
        self.add_legend()
        self.add_axis(bottom)
        self.add_rows()
        height = bottom + 10
        body = "\n".join(self.shapes)
        return (f'<?xml version="1.0" encoding="UTF-8"?>\n<svg xmlns="http://www.w3.org/2000/svg" width="{self.WIDTH}" '
                f'height="{height}" viewBox="0 0 {self.WIDTH} {height}" font-family="sans-serif" font-size="12" '
                'fill="#24292f">\n<title>Time of others, as a multiple of the time with a window</title>\n'
                f'<rect x="0.5" y="0.5" width="{self.WIDTH - 1}" height="{height - 1}" rx="6" fill="#ffffff" '
                f'stroke="#d0d7de"/>\n{body}\n</svg>\n')


def picture_of(file):
    rows = list(figures_of(file))
    ratios = [ratio for _, _, _, of_row in rows for ratio in of_row.values()]
    return chart(rows, min(0.5, *ratios) * 0.9, max(*ratios) * 1.3).text()
