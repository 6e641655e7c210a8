"""Runs those tests of rdma-core that concern memory keys on devices with the capabilities of cards (`softhca-run
--profile`). A test has to pass if it passes on the device without a profile, unless the profile withholds what it uses:
then it has to end in the words that are listed here, and counts as skipped."""
import dataclasses
import os
import threading
import time

from cases import FAILED, SKIPPED
from pyverbs_suite import SUITE, modules, run_module

# Modules whose tests bind, nest, move or invalidate keys, use rights of them that cards may lack, or make them of other
# memory than the host's. Those of signatures, encryption, on-demand paging and GPUs skip themselves here.
MODULES = ("test_atomic", "test_cuda_dmabuf", "test_device", "test_mlx5_crypto", "test_mlx5_cuda_umem", "test_mlx5_dc",
           "test_mlx5_devx", "test_mlx5_dm_ops", "test_mlx5_dma_memcpy", "test_mlx5_dmabuf", "test_mlx5_mkey",
           "test_mlx5_raw_wqe", "test_mr", "test_odp", "test_qpex", "test_relaxed_ordering", "test_shared_pd")
QUICK_MODULES = ("test_mlx5_mkey", "test_mr")


@dataclasses.dataclass(frozen=True)
class Withheld:
    """Tests, by the start of their names, that a card cannot pass: how they end, in which words, and why."""
    tests: tuple
    outcome: str
    words: str
    reason: str


# libmlx5 asks for no capability: mlx5_send_wr_set_mkey_access_flags always names the atomic right among those that the
# UMR sets, and umr_strided_seg_create makes repeat blocks. Linux sends no UMR of its own that names that right where
# the card refuses it (umr_check_mkey_mask), and has methods of memory windows only for cards with imaicl
# (mlx5_ib_dev_mw_ops).
REFUSED = "PyverbsRDMAError: Completion status is Memory window bind error"
ATOMIC_RIGHT = Withheld(
    tuple(f"test_mlx5_mkey.Mlx5MkeyTest.test_mkey_{name}" for name in ("interleaved", "list", "remote_invalidate")),
    FAILED, REFUSED, "libmlx5 sets the atomic right whenever it sets rights, and this card lets no UMR do that")
REPEAT_BLOCKS = Withheld(
    ("test_mlx5_mkey.Mlx5MkeyTest.test_mkey_interleaved",),
    FAILED, REFUSED, "libmlx5 makes interleaved keys of repeat blocks, and this card has none")
DEVICE_MEMORY = Withheld(
    ("test_device.DMTest.", "test_device.SharedDMTest.", "test_mr.DeviceMemory"),
    SKIPPED, "Device memory is not supported", "the card has no device memory")
NO_WINDOWS = "Linux offers memory windows only on cards that check nested keys by their local rights (imaicl)"
WINDOWS = (
    Withheld(("test_mr.MWTest.test_reg_mw_wrong_type",), SKIPPED, "Create memory window of type", NO_WINDOWS),
    Withheld(("test_mr.MWTest.",), SKIPPED, "Create MW is not supported", NO_WINDOWS),
    Withheld(("test_qpex.QpExTestCase.test_qp_ex_rc_bind_mw",), SKIPPED, "Memory Window allocation is not supported",
             NO_WINDOWS))

# The profiles, and what each withholds; of several entries for a test the first one counts. The second kind of virtual
# function shows what the refusal of all UMRs hides on the first one.
PROFILES = {
    "none": (),
    "cx5": (),
    "cx6dx": (),
    "cx7": (),
    "bf3": (),
    "vf": (DEVICE_MEMORY, *WINDOWS, ATOMIC_RIGHT),
    "vf,umr_modifies_atomic=1": (DEVICE_MEMORY, *WINDOWS, REPEAT_BLOCKS),
}
SKIPPED_ANYWAY = "skipped without a profile as well"


@dataclasses.dataclass(frozen=True)
class Card:
    profile: str
    seed: int | None = None  # of the adversarial order; None is the order of posting

    @property
    def suite(self):
        return f"{SUITE} on {self.profile}" + (", adversarial" if self.seed is not None else "")

    @property
    def options(self):
        order = "posted" if self.seed is None else f"adversarial,seed={self.seed}"
        return ("--profile", self.profile, "--order", order)


def cards(quick):
    """Each profile in the order of posting, and all in the adversarial order, each day with another seed."""
    yield from (Card(profile) for profile in PROFILES if profile != "none")
    if not quick:
        seed = int(os.environ.get("UCXL_TEST_SEED") or time.strftime("%Y%m%d000000", time.gmtime()))
        yield from (Card(profile, seed) for profile in PROFILES)


class Plain:
    """What the tests do on the device without a profile. Each module runs once, for whoever needs it first."""

    def __init__(self, device, tests):
        self.device, self.tests, self.results = device, tests, {}
        self.locks = {module: threading.Lock() for module in modules()}

    def run(self, module):
        """The results of all tests of the module, in their order."""
        with self.locks[module]:
            if module not in self.results:
                self.results[module] = list(run_module(self.device, self.tests, module))
            return self.results[module]


def judged(card, plain, result):
    """The result as the card explains it; `plain` is that of the same test without a profile, if there is one."""
    if plain is not None and plain.outcome == SKIPPED:
        return dataclasses.replace(result, why=SKIPPED_ANYWAY) if result.outcome == SKIPPED else result
    withheld = next((each for each in PROFILES[card.profile] if result.name.startswith(each.tests)), None)
    ended = f"{result.outcome}: {result.why}"
    if withheld is None and result.outcome == SKIPPED:
        return dataclasses.replace(result, outcome=FAILED, why=f"the profile does not explain '{ended}'")
    if withheld is None:
        return result
    if result.outcome == withheld.outcome and result.why.startswith(withheld.words):
        return dataclasses.replace(result, outcome=SKIPPED, why=withheld.reason)
    return dataclasses.replace(result, outcome=FAILED, why=f"expected '{withheld.words}' and not '{ended}'")


def run_on(card, plain, module):
    """Yields the results of the module's tests on that card."""
    known = {result.name: result for result in plain.run(module)}
    for result in run_module(plain.device, plain.tests, module, card.suite, card.options):
        result = judged(card, known.get(result.name), result)
        if result.outcome == FAILED:
            result = dataclasses.replace(result, why=f"{result.why} (softhca-run {' '.join(card.options)})")
        yield result
