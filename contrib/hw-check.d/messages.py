"""What firmware and kernel said: syndromes in the output of programs, and new lines of the kernel's log."""
import os
import re

MOST = 20  # lines that are kept of one output

# UCX: "synd 0x13 vend 0x88"; this project and libmlx5: "syndrome 0x172df6"; verbs: "vendor_err".
SYNDROME = re.compile(r"\bsynd(rome)?\b|\bvend(or)?([ _]err\w*)?\b", re.I)
OF_THE_CARD = re.compile("mlx5|infiniband", re.I)


def last_line(text):
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "no output")


def complaint(text):
    """The first line with a syndrome, because UCX prints a backtrace behind it, or the last line."""
    return next(iter(syndromes(text)), last_line(text))


def syndromes(text):
    """Each line that has one, once."""
    return list(dict.fromkeys(line.strip() for line in text.splitlines() if SYNDROME.search(line)))[:MOST]


class KernelLog:
    """New messages of the kernel about the card, from now on. Usually only root may read them."""

    def __init__(self, path="/dev/kmsg"):
        self._file = None
        try:
            self._file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            os.lseek(self._file, 0, os.SEEK_END)
            self.is_readable = True
        except OSError:
            self.is_readable = False

    def new_lines(self):
        lines = []
        while self.is_readable:
            try:
                record = os.read(self._file, 8192).decode(errors="replace")
            except BrokenPipeError:
                continue  # records were overwritten before they were read
            except OSError:
                break     # there are no more
            text = record.partition(";")[2].splitlines()[0] if ";" in record else record
            if OF_THE_CARD.search(text):
                lines.append(text.strip())
        return lines
