"""The claims of docs/needs-hardware.md, and verdicts about them from what was run."""
import dataclasses
import re

OK, DIFFERS, NOT_TESTED = "ok", "differs", "not tested"
SKIPPED = "skipped"  # of one run: it says nothing about its claims
SHORT = 60           # characters of a claim's text in a table

ROW = re.compile(r"^\| (\d+) \| (.*) \|$")
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


@dataclasses.dataclass(frozen=True)
class Claim:
    number: int
    text: str
    settled_by: str  # what it takes, in words

    @property
    def short(self):
        return self.text if len(self.text) <= SHORT else self.text[:SHORT - 3].rstrip() + "..."


def read_claims(path):
    """The rows of all tables of the page whose first cell is a number."""
    claims = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            if row := ROW.match(line):
                cells = LINK.sub(r"\1", row[2]).replace("`", "").split(" | ")
                claims.append(Claim(int(row[1]), cells[0], cells[1]))
    return claims


class About:
    """Claims that one run is about: "1 2 ~17" can settle 1 and 2, and can only speak against 17."""

    def __init__(self, words):
        self.words = words
        self.settled = tuple(int(word) for word in words.split() if not word.startswith("~"))
        self.touched = tuple(int(word[1:]) for word in words.split() if word.startswith("~"))

    def __contains__(self, number):
        return number in self.settled or number in self.touched

    def __str__(self):
        return self.words.replace("~", "")


@dataclasses.dataclass
class Evidence:
    """One thing that was tried."""

    kind: str    # run, program, test, capability or measurement
    name: str
    about: About
    result: str  # OK, DIFFERS or SKIPPED
    note: str = ""
    figures: dict = dataclasses.field(default_factory=dict)
    messages: list = dataclasses.field(default_factory=list)

    def as_json(self):
        return {"kind": self.kind, "name": self.name, "settles": list(self.about.settled),
                "touches": list(self.about.touched), "result": self.result, "note": self.note,
                "figures": self.figures, "messages": self.messages}


@dataclasses.dataclass
class Verdict:
    claim: Claim
    verdict: str
    stands_on: list  # names
    reason: str      # why not ok

    def as_json(self):
        return {"claim": self.claim.number, "text": self.claim.text, "verdict": self.verdict,
                "stands_on": self.stands_on, "reason": self.reason}


def judge(claim, evidence, blocked, elsewhere):
    """The verdict about one claim.

    evidence   all that was tried
    blocked    claim -> why this device cannot settle it: what it says it cannot do, or what the library does not use
    elsewhere  claim -> in which other form of the command it is tested
    """
    number = claim.number
    about = [each for each in evidence if number in each.about]
    against = [each for each in about if each.result == DIFFERS]
    if number in blocked:
        against = [each for each in against if each.kind == "capability"]
    if against:
        return Verdict(claim, DIFFERS, [each.name for each in against], against[0].note)
    if number in blocked:
        return Verdict(claim, NOT_TESTED, [], blocked[number])
    settling = [each for each in about if each.result == OK and number in each.about.settled]
    if settling:
        return Verdict(claim, OK, [each.name for each in about if each.result == OK], "")
    skipped = [each for each in about if each.result == SKIPPED and number in each.about.settled]
    if skipped:
        return Verdict(claim, NOT_TESTED, [each.name for each in skipped], skipped[0].note)
    if number in elsewhere:
        return Verdict(claim, NOT_TESTED, [], f"needs {elsewhere[number]}")
    return Verdict(claim, NOT_TESTED, [], f"no run settles it; it takes: {claim.settled_by}")
