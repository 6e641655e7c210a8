"""The report of one side: the tables that are printed, and the file to send back."""
import json

from claims import DIFFERS, judge, NOT_TESTED, OK
from device import print_heading

MOST_NAMES = 4
FORMAT = 1  # of the file; another number when a field changes its meaning


def words_of(verdict):
    """What it stands on, in short; the file has all names."""
    if verdict.verdict == NOT_TESTED:
        return verdict.reason
    names = list(dict.fromkeys(verdict.stands_on))
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return "; ".join(names[:MOST_NAMES]) + more + (f" ({verdict.reason})" if verdict.reason else "")


class Report:
    def __init__(self, heading, capabilities):
        self.heading = heading
        self.capabilities = capabilities
        self.evidence = []
        self.verdicts = []
        self.kernel = []
        self.kernel_is_readable = False

    def begin(self):
        print_heading(self.heading)
        self.capabilities.print()
        self.evidence += self.capabilities.evidence()

    def begin_runs(self):
        print(f"{'claims':14} {'run':36} {'result':8}", flush=True)

    def add(self, evidence):
        """Prints one line, and the syndromes of what differs."""
        self.evidence.append(evidence)
        print(f"{str(evidence.about):14} {evidence.name:36} {evidence.result:8} {evidence.note}".rstrip(), flush=True)
        if evidence.result == DIFFERS:
            for line in evidence.messages:
                print(f"{'':15}{line}", flush=True)

    def add_quietly(self, evidence):
        self.evidence.append(evidence)

    def of_kind(self, kind):
        return [each for each in self.evidence if each.kind == kind]

    def end(self, claims, elsewhere, kernel_log):
        """The verdicts. Returns the exit status."""
        self.kernel = kernel_log.new_lines()
        self.kernel_is_readable = kernel_log.is_readable
        blocked = self.capabilities.blocked()
        self.verdicts = [judge(claim, self.evidence, blocked, elsewhere) for claim in claims]
        self._print_verdicts()
        runs = self.of_kind("run") + self.of_kind("program")
        wrong = sum(each.result == DIFFERS for each in runs)
        fine = sum(each.result == OK for each in runs)
        refuted = sum(each.verdict == DIFFERS for each in self.verdicts)
        settled = sum(each.verdict == OK for each in self.verdicts)
        side = self.heading["side"]
        if runs:
            left = len(runs) - fine - wrong
            print(f"hw-check: {side}: {len(runs)} run, {fine} ok, {wrong} differ" +
                  (f", {left} cannot be done here" if left else ""))
        print(f"hw-check: {side}: {len(self.verdicts)} claims: {settled} ok, {refuted} differ, "
              f"{len(self.verdicts) - settled - refuted} not tested", flush=True)
        return 1 if wrong or refuted or not (runs or self.capabilities.lines) else 0

    def _print_verdicts(self):
        if self.kernel:
            print("\nnew messages of the kernel\n" + "\n".join(self.kernel))
        elif not self.kernel_is_readable:
            print("\nthe messages of the kernel cannot be read; root may")
        print(f"\n{'claim':6}{'verdict':11}{'text':61}stands on")
        for each in self.verdicts:
            print(f"{each.claim.number:<6}{each.verdict:11}{each.claim.short:61}{words_of(each)}")
        print()

    def as_json(self):
        return {
            "format": FORMAT,
            "heading": self.heading,
            "capabilities": self.capabilities.as_json(),
            "evidence": [each.as_json() for each in self.evidence],
            "verdicts": [each.as_json() for each in self.verdicts],
            "messages": {
                "kernel_is_readable": self.kernel_is_readable,
                "kernel": self.kernel,
                "syndromes": list(dict.fromkeys(line for each in self.evidence for line in each.messages)),
            },
        }

    def write(self, path):
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self.as_json(), file, indent=1)
            file.write("\n")
        print(f"hw-check: {self.heading['side']}: to send in: {path}", flush=True)
