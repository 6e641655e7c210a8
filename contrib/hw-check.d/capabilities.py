"""What a device says about memory keys, what the library uses of it, and what this means for the claims."""
import dataclasses
import re
import subprocess

import commands
from claims import About, DIFFERS, Evidence, OK, SKIPPED
from messages import last_line, syndromes

REPEAT, LISTS, LEVELS = "repeat blocks", "lists in memory", "levels of keys"
LOCAL, ATOMICS, START = "nested keys by local rights", "atomic operations", "start addresses"
LOCKS, RELAXED, LOG_KEYS = "atomics lock memory", "relaxed order only", "log of keys"
ENTRIES, OPENS = "entries of a list", "opens keys to other functions"
EQUAL = "keys of equal entries"

PATIENCE = 120
BITS_OF_AN_INDEX = 24

# A line whose "used" is not what is "said" speaks against these claims. "Settled" are claims that the library's
# self-test tries on the device itself, as a whole.
CLAIMS = {
    REPEAT: About("~2 ~17"),
    LISTS: About("~25"),
    ENTRIES: About("~25"),
    LEVELS: About("~2 ~14"),
    LOCAL: About("19"),
    ATOMICS: About("~24"),
    START: About("21"),
    OPENS: About("~7"),
}
NONE = About("")

# What cannot be settled without a capability.
NEEDED = {
    REPEAT: (17,),
    LOCAL: (19,),
    ATOMICS: (24, 38, 48),
    LISTS: (25, 50),
    EQUAL: (16, 23),
    OPENS: (7, 12, 44, 45, 46, 47),
    LOCKS: (48,),
}


@dataclasses.dataclass
class Line:
    name: str
    said: str
    used: str
    reason: str = ""

    @property
    def differs(self):
        return self.used != self.said


class Capabilities:
    """The table of `ucx_layout_info --device DEVICE`. Empty if there is none; then `error` says why."""

    def __init__(self, text, error=""):
        self.lines = []
        self.error = error
        for line in text.splitlines():
            cells = re.split(r"\s{2,}", line.strip())
            if len(cells) >= 3 and cells[0] not in ("device", "capability"):
                self.lines.append(Line(*cells[:3], " ".join(cells[3:])))

    def find(self, name):
        return next((line for line in self.lines if line.name == name), None)

    def used(self, name):
        line = self.find(name)
        return line.used if line else ""

    def as_json(self):
        return [dataclasses.asdict(line) for line in self.lines]

    def print(self):
        print(f"\n{'capability':31}{'said':9}{'used':9}reason")
        for line in self.lines:
            print(f"{line.name:31}{line.said:9}{line.used:9}{line.reason}".rstrip())
        if not self.lines:
            print(f"no table: {self.error}")
        print(flush=True)

    def evidence(self):
        if not self.lines:
            return [Evidence("capability", "table of capabilities", About("~1 ~2"), DIFFERS, self.error,
                             messages=syndromes(self.error))]
        found = []
        for line in self.lines:
            about, differs = CLAIMS.get(line.name, NONE), line.differs
            note = f"said {line.said}" + (f": {line.reason}" if line.reason else "")
            result = DIFFERS if differs else OK if line.used not in ("no", "none") else SKIPPED
            if line.name == OPENS and differs and self.used(START) != "umr":
                # The library opens no key then, whatever the device does.
                result = SKIPPED
            if line.name == RELAXED and line.used == "yes":
                about, result = About("~42"), DIFFERS
                note = "all memory of the device lets writes pass writes"
            if line.name == LOG_KEYS and line.used.isdigit() and int(line.used) < BITS_OF_AN_INDEX:
                about = About("36")
            found.append(Evidence("capability", f"{line.name}: {line.used}", about, result, note,
                                  {"said": line.said, "used": line.used}, syndromes(line.reason)))
        return found

    def blocked(self):
        """claim -> why this device does not settle it."""
        blocked = {}
        for name, claims in NEEDED.items():
            line = self.find(name)
            if line and line.used == "no":
                why = f"{name}: {'the device says no' if line.said == 'no' else 'not used'}"
                blocked.update({claim: why for claim in claims if claim not in blocked})
        return blocked


def read_capabilities(device, env):
    try:
        ended = commands.run(["ucx_layout_info", "--device", device], PATIENCE, env=env)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Capabilities("", str(error))
    return Capabilities(ended.stdout, last_line(ended.stderr or ended.stdout) if ended.returncode else "")
