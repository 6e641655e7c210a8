"""The Python of README.md and docs/python.md does what the text says."""
import os
import re
import subprocess
import sys
import unittest

import numpy as np
import ucx_layout as ul
from test_connection import free_port

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def blocks_of(*path):
    with open(os.path.join(TOP, *path), encoding="utf-8") as file:
        return re.findall(r"^```python\n(.*?)^```$", file.read(), flags=re.S | re.M)


def run_both(sender, receiver):
    """Runs two programs at the same time and returns what the second one prints."""
    port = str(free_port())
    processes = [subprocess.Popen([sys.executable, "-c", text.replace("13337", port)], stdout=subprocess.PIPE,
                                  text=True) for text in (sender, receiver)]
    outputs = [process.communicate(timeout=60)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    return outputs[1]


class Documents(unittest.TestCase):
    def test_two_processes_of_the_readme(self):
        imports, one, other = blocks_of("README.md")[0].strip().split("\n\n")
        self.assertEqual(run_both(f"{imports}\n{one}", f"{imports}\n{other}\nprint(b[::2].sum(), b[1::2].sum())"),
                         "1024.0 0.0\n")

    def test_two_processes_of_the_page(self):
        one, other = [block for block in blocks_of("docs", "python.md") if "13337" in block]
        self.assertEqual(run_both(one, f"{other}\nprint((b[::2] == np.arange(8000.0)[5::8]).all())"), "True\n")

    def test_layouts_of_the_page(self):
        names = {"table": np.array([3, 1], np.int32)}
        exec(blocks_of("docs", "python.md")[0], names)
        self.assertEqual(repr(ul.layout_of(names["a"][:, 5])), "<Layout strided(1000,8,64): 8000 bytes>")


if __name__ == "__main__":
    unittest.main()
