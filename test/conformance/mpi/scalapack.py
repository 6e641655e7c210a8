"""The testers of BLACS, PBLAS and ScaLAPACK, with the input of their authors, and with larger matrices. Debian has the
programs, for both MPIs."""
import os
import re

from machine import Case, Suite

FOLDER = "/usr/lib/x86_64-linux-gnu/scalapack/{mpi}-tests"
PACKAGE = "scalapack-mpi-test"
COMMON = "/usr/share/scalapack"

# The testers print times, and rates in the same form, among the results. A residual is a number of few digits: what it
# is compared with is a part of the test, so "PASSED" or "FAILED" stays.
NUMBERS = (r"-?\d+\.\d*(?:[ED][+-]?\d+)?", r" +#", r"\*{3,}")
PASSED = r"PASSED *$"


def text_of(name):
    path = os.path.join(COMMON, name)
    if not os.path.exists(path):
        return ""  # the suite is left out then
    with open(path, encoding="utf-8") as file:
        return file.read()


def named(program):
    """The file that a program reads its input from."""
    kind = re.sub("^x[sdcz]", "", program).upper()
    kinds = {"DBLU": "BLU", "DTLU": "BLU", "GBLU": "BLU", "PBLLT": "BLLT", "PTLLT": "BLLT", "GSEP": "SEP",
             "SYEVR": "SEPR", "HSEQR": ""}
    return kinds.get(kind, kind)


def blacs_input(ranks):
    """The input without the auxiliary tests, the last of which ends all processes by BLACS_ABORT. With two processes
    there is no grid of 2 x 2: the first grids are then 2 x 1 and 1 x 2."""
    files = {"bt.dat": text_of("BLACS/bt.dat").replace("'T'                             Run AUX?", "'F' Run AUX?")}
    if ranks == 2:
        for name in ("sdrv.dat", "bsbr.dat", "comb.dat"):
            lines = text_of(f"BLACS/{name}").split("\n")
            for number, line in enumerate(lines):
                if line.endswith("Number of grids"):
                    lines[number:number + 3] = ["2 Number of grids", "2 1 NPROW", "1 2 NPCOL"]
                # Sources and destinations lie within the grids.
                found = re.search(r"[RC](SRC|DEST)$", line)
                if found:
                    lines[number] = re.sub(r"[1-9]", "0", line)
            files[name] = "\n".join(lines)
    return files


def blacs():
    for program, ranks in (("xCbtest", 2), ("xCbtest", 4), ("xFbtest", 2)):
        # "INTEGER SDRV TESTS: PASSED ALL   50 TESTS.", "REAL SUM TESTS: 1152 TESTS;  864 PASSED, ..."
        yield Case(f"{program}, {ranks} processes", (f"{FOLDER}/BLACS/{program}",), ranks=ranks, needs_ranks=True,
                   inputs=f"{COMMON}/BLACS", files=blacs_input(ranks), is_timed=ranks == 2,
                   counted=r"TESTS; +(\d+) PASSED|PASSED ALL +(\d+) TESTS")


def pblas():
    for program in (f"{precision}pb{level}tst" for level in "123" for precision in "sdcz"):
        yield Case(program, (f"{FOLDER}/PBLAS/{program}",), inputs=f"{COMMON}/PBLAS", varies=NUMBERS,
                   passed=r"PASSED", is_timed=program[0] in "dz")


# A program for each part of the library, in one or two of its four precisions.
PROGRAMS = ("xslu xdlu xclu xzlu xsinv xdinv xzinv xsllt xdllt xzllt xdqr xzqr xdls xzls xdsep xzsep xdgsep "
            "xdsyevr xdbrd xdtrd xdhrd xdnep xznep xdsvd xzevc xddblu xddtlu xdgblu xdpbllt xdptllt xdhseqr").split()


# These want 2 x 2 processes. With the others that takes long where there are fewer processors.
FOUR = ("xdsep", "xzsep", "xdgsep", "xdsyevr", "xdsvd")


def testing():
    for program in PROGRAMS:
        data = named(program)
        # Where there is no large case, the small one is timed.
        yield Case(program, (f"{FOLDER}/{program}",), ranks=4 if program in FOUR else 2,
                   inputs=f"{COMMON}/{data}.dat" if data else "",
                   passed=PASSED, varies=NUMBERS, is_timed=program in ("xdls", "xdsep", "xdbrd", "xdnep"))


def first_lines(kind, text):
    return f"'{kind}'\n'large'\n'{kind}.out'\n6\n{text}"


GRIDS = "2\n1 2\n2 1\n"  # 1 x 2 and 2 x 1 processes
LARGE = {
    "xdlu": ("LU", f"1\n800\n800\n2\n8 64\n1\n8\n1\n8\n{GRIDS}10.0\nF\n"),
    "xdllt": ("LLT", f"'U'\n1\n800\n2\n8 64\n1\n8\n1\n8\n{GRIDS}10.0\nF\n"),
    "xdinv": ("INV", f"2\n'GEN' 'UPD'\n1\n400\n2\n8 64\n{GRIDS}10.0\n"),
    "xdtrd": ("TRD", f"'L'\n1\n400\n2\n8 32\n{GRIDS}10.0\n"),
}


def large():
    for program, (kind, text) in LARGE.items():
        yield Case(program, (f"{FOLDER}/{program}",), files={f"{kind}.dat": first_lines(kind, text)}, passed=PASSED,
                   varies=NUMBERS)


def large_level_3(precision):
    """The input for times of level 3 of PBLAS, with matrices of 320 x 320 instead of 10 x 10."""
    name = f"P{precision}BLAS3TIM.dat"
    sizes = {"blocksize": "16", "P": "1", "Q": "2", "M": "320", "N": "320", "K": "320"}
    sizes.update({f"{size}_{matrix}": "320" for size in "MN" for matrix in "ABC"})
    sizes.update({f"{size}_{matrix}": "16" for size in ("IMB", "INB", "MB", "NB") for matrix in "ABC"})
    lines = text_of(f"PBLAS/TIMING/{name}").split("\n")
    for number, line in enumerate(lines):
        found = re.match(r"([\d ]+?)\s+values? of (?:the logical computational )?(\w+)", line)
        if found and found[2] in sizes:
            lines[number] = re.sub(r"\d+", sizes[found[2]], found[1]) + "\tvalues"
    return {name: "\n".join(lines)}


def level_3():
    for program, precision in (("dpb3tim", "D"), ("zpb3tim", "Z")):
        yield Case(program, (f"{FOLDER}/PBLAS/TIMING/{program}",), files=large_level_3(precision), varies=NUMBERS)


def suites():
    common = {"needs": (FOLDER,), "package": PACKAGE}
    yield Suite("BLACS", tuple(blacs()), **common)
    yield Suite("PBLAS", tuple(pblas()), **common)
    yield Suite("PBLAS, large", tuple(level_3()), **common)
    yield Suite("ScaLAPACK", tuple(testing()), **common)
    yield Suite("ScaLAPACK, large", tuple(large()), **common)
