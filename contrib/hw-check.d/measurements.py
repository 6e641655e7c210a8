"""Claims that no single run settles: they are about the figures of several, or about what was set meanwhile."""
from claims import About, DIFFERS, Evidence, OK, SKIPPED
from runs import (ADD_IN_CARD, ADD_IN_HOST, ADD_RELAXED, AGAINST_1K, AGAINST_64, AGAINST_8, BY_CARD, BY_HOST, CLIENT,
                  DPU_CLIENT, FAILURE, ONE_HOST, PLAIN_PUT, PROTOCOLS, PROTOCOLS_OFF, PUT_RELAXED, ROWS_PUT)

LINE_RATE = 0.9           # of the rate of plain memory
BIND_US = 3               # "about a microsecond"
CREATE_US = (50, 1000)    # "some hundred"
OPEN_US = (50, 500)       # "some 150", of opening a key and of making an alias
TIMES_OF_KEYS = "card_claims.times_of_1000_keys"
TIMES_OF_ALIASES = "times of opened keys and aliases"


def bytes_per_s(run):
    return run.figures["median_bytes_per_s"]


def card_adds_faster(host, card):
    ratio = host.figures["median_us"] / card.figures["median_us"]
    return ratio > 1, f"{ratio:.2f} times as fast in memory of the card"


def line_rate(plain, rows):
    ratio = bytes_per_s(rows) / bytes_per_s(plain)
    return ratio >= LINE_RATE, f"blocks of 1 KB at {ratio:.2f} of the rate of plain memory"


def shared_memory_is_faster(card, host):
    ratio = bytes_per_s(host) / bytes_per_s(card)
    return ratio > 1, f"{ratio:.2f} times as fast without the card"


def keys_cost_little(times):
    bind, create = (float(times.figures[name]) for name in ("bind_us", "create_us"))
    return bind <= BIND_US and CREATE_US[0] <= create <= CREATE_US[1], f"bind {bind:.2f} us, create {create:.1f} us"


def aliases_cost_some_hundred(times):
    names = ("open_us", "alias_us", "bind_us")
    opened, alias, bind = (float(times.figures[name]) for name in names)
    holds = all(OPEN_US[0] <= each <= OPEN_US[1] for each in (opened, alias)) and bind <= BIND_US
    return holds, f"open {opened:.1f} us, alias {alias:.1f} us, bind {bind:.2f} us"


def gains(*runs):
    return [run.figures["speed_against_first"] for run in runs]


def gains_are_known(*runs):
    return True, "times as fast as packing: " + ", ".join(f"{gain:.2f}" for gain in gains(*runs))


def short_blocks_lose(short, long):
    first, last = gains(short, long)
    return first < 1 < last, f"times as fast as packing: {first:.2f} for 8 bytes, {last:.2f} for 1 KB"


# Claims, name, runs, judge; and below in which form of the command a claim is settled.
SPEEDS = (
    ("5", "memory of the card against host memory", (ADD_IN_HOST, ADD_IN_CARD), card_adds_faster),
    ("6", "times of keys", (TIMES_OF_KEYS,), keys_cost_little),
    ("8", "windows against packing", (AGAINST_8, AGAINST_64, AGAINST_1K), gains_are_known),
    ("27", "short and long blocks against packing", (AGAINST_8, AGAINST_1K), short_blocks_lose),
    ("47", "opened keys and their aliases", (TIMES_OF_ALIASES,), aliases_cost_some_hundred),
    ("~41", "line rate", (PLAIN_PUT, ROWS_PUT), line_rate),
    ("43", "one host, with and without the card", (BY_CARD, BY_HOST), shared_memory_is_faster),
)


SETTLED_IN = {CLIENT: (4, 5, 8, 27, 42), ONE_HOST: (6, 43), DPU_CLIENT: (12, 14, 45, 47), FAILURE: (26,)}


def judge_speeds(report, is_software):
    """Adds a measurement for each claim whose runs were all made."""
    made = {each.name: each for each in report.evidence if each.result == OK and each.figures}
    for claims, name, needed, judge in SPEEDS:
        if not all(each in made for each in needed):
            continue
        try:
            holds, note = judge(*(made[each] for each in needed))
        except KeyError:
            continue  # the other side has the figures
        if is_software:
            report.add_quietly(Evidence("measurement", name, About(claims), SKIPPED,
                                        "times of the software device mean nothing"))
        else:
            report.add_quietly(Evidence("measurement", name, About(claims), OK if holds else DIFFERS, note))


def judge_relaxed_ordering(report, in_pci):
    """The order of a window's bytes is only put to the test where the card may relax it."""
    tried = {each.name: each.result for each in report.evidence}
    if tried.get(ADD_RELAXED) == OK and tried.get(PUT_RELAXED) == OK:
        report.add_quietly(Evidence("measurement", "relaxed ordering", About("42"), OK if in_pci == "on" else SKIPPED,
                                    f"relaxed ordering of PCIe: {in_pci}"))


def judge_protocols(report):
    """Plain memory goes by the same protocols and lanes with keys and without them."""
    shown = {each.name: set(each.figures["protocols"]) for each in report.evidence if each.figures.get("protocols")}
    if PROTOCOLS in shown and PROTOCOLS_OFF in shown:
        are_same = shown[PROTOCOLS] == shown[PROTOCOLS_OFF]
        report.add_quietly(Evidence("measurement", "protocols of plain memory", About("4"), OK if are_same else DIFFERS,
                                    "" if are_same else "others than with UCX_LAYOUT_KEYS_ENABLE=n"))
