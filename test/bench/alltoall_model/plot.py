"""Draws the gain over MR + KSM and what decides it, by message size. Nothing else of the model needs matplotlib."""
from costs import REFERENCE, SCHEMES, Refused
from report import size_name
from study import PUBLISHED_PERCENT


def draw(path, rows):
    try:
        import matplotlib
        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError:
        raise Refused("--plot: needs matplotlib (Debian: python3-matplotlib); --csv and --json do not") from None
    matplotlib.rcParams["svg.hashsalt"] = "ucx-layout"  # the same picture each time
    matplotlib.rcParams["svg.fonttype"] = "none"  # text as text, not 2,000 lines of outlines
    figure, (gain, ratio) = pyplot.subplots(1, 2, figsize=(10, 4))
    efficiencies = list(dict.fromkeys(row.network_efficiency for row in rows))
    for efficiency, style in zip(efficiencies, ("-", "--")):
        name = f"link at {100 * efficiency:.0f} %"
        for scheme in dict.fromkeys(row.scheme for row in rows):
            line = [row for row in rows if row.scheme == scheme and row.network_efficiency == efficiency]
            sizes = [row.message_bytes for row in line]
            if scheme == REFERENCE:
                ratio.plot(sizes, [row.ratio for row in line], style, marker=".", color="black", label=name)
            elif SCHEMES[scheme].is_pool:
                gain.plot(sizes, [row.faster_percent for row in line], style, marker=".",
                          color="C1" if SCHEMES[scheme].is_cache else "C0", label=f"{SCHEMES[scheme].label}, {name}")
    if any(row.published_percent is not None for row in rows):
        gain.plot(list(PUBLISHED_PERCENT), list(PUBLISHED_PERCENT.values()), "x", color="C3", markersize=9,
                  label="published")
    ticks = sorted({row.message_bytes for row in rows})
    for axes, text in ((gain, "faster than by MR + KSM, %"), (ratio, "registration / communication, MR + KSM")):
        axes.set_xscale("log", base=2)
        axes.set_xticks(ticks, [size_name(size) for size in ticks], rotation=60, fontsize=8)
        axes.set_xlabel("message")
        axes.set_ylabel(text)
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(fontsize=7)
    figure.tight_layout()
    try:
        figure.savefig(path, metadata={"Date": None} if path.endswith(".svg") else None)
        if path.endswith(".svg"):
            strip_blanks(path)
    except (OSError, ValueError) as error:  # ValueError: a format that matplotlib does not know
        raise Refused(f"--plot: {error}") from None
    pyplot.close(figure)


def strip_blanks(path):
    """No line of a tracked file ends with blanks."""
    with open(path, encoding="utf-8") as file:
        lines = [line.rstrip() + "\n" for line in file]
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(lines)
