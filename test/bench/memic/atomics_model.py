"""A model of atomic operations on one word: what memory of the card (MEMIC) saves, in closed form.

The card of the target carries out the operations on a word one after the other. Each takes

    service = card            if the word is in the card's memory
    service = card + PCIe     if it is in host memory: the card waits for a round trip of the PCI bus

The rest of a round trip, `network`, overlaps with that of other operations. With N outstanding, of one initiator or of
N initiators with one each, an operation takes

    time = max((network + service) / N, service)

and its initiator waits N times that. An add is posted: nobody waits for a reply, so many are outstanding whatever the
window is, and time = service.

`card` and `network` are set by two published times. `PCIe` is published, too, as "more than 350 ns"; the model takes
350 ns. Nothing here was measured.
"""
import dataclasses

# ConnectX-6, UCX 1.16, microseconds: of test, outstanding, and where the word is. "rdma" is the card's memory.
PUBLISHED_US = {("ucp_fadd", 1, "host"): 1.653, ("ucp_fadd", 1, "rdma"): 1.426,
                ("ucp_fadd", 16, "host"): 0.420, ("ucp_fadd", 16, "rdma"): 0.123,
                ("ucp_add", 1, "host"): 0.627, ("ucp_add", 1, "rdma"): 0.299,
                ("ucp_add", 16, "host"): 0.588, ("ucp_add", 16, "rdma"): 0.300}
PUBLISHED_PCIE_US = 0.350
LATENCY, RATE, ADD_RATE = ("ucp_fadd", 1, "rdma"), ("ucp_fadd", 16, "rdma"), ("ucp_add", 16, "rdma")
LIMIT_PERCENT = 15


@dataclasses.dataclass(frozen=True)
class Model:
    network_us: float
    card_us: float
    pcie_us: float
    add_us: float = 0   # more for an add than for a fetch-and-add; no reason for it is known
    set_by: tuple = ()  # the published times that the model reproduces because they set it

    def service_us(self, test, memory):
        return (self.card_us + (self.pcie_us if memory == "host" else 0) + (self.add_us if test == "ucp_add" else 0))

    def time_us(self, test, outstanding, memory):
        service = self.service_us(test, memory)
        if test == "ucp_add":
            return service
        return max((self.network_us + service) / outstanding, service)

    def difference_percent(self, case):
        return 100 * (self.time_us(*case) / PUBLISHED_US[case] - 1)

    def predicted(self):
        return [case for case in PUBLISHED_US if case not in self.set_by]

    def within(self):
        return [case for case in self.predicted() if abs(self.difference_percent(case)) <= LIMIT_PERCENT]


def of_two_figures():
    card = PUBLISHED_US[RATE]
    return Model(PUBLISHED_US[LATENCY] - card, card, PUBLISHED_PCIE_US, set_by=(LATENCY, RATE))


def of_three_figures():
    """The same with a time that every add takes in addition, set by a third figure."""
    two = of_two_figures()
    return dataclasses.replace(two, add_us=PUBLISHED_US[ADD_RATE] - two.card_us, set_by=two.set_by + (ADD_RATE,))


def closest_percent(one, other):
    """How far a time has to be from one of two published times at least, whatever it is."""
    one, other = sorted((PUBLISHED_US[one], PUBLISHED_US[other]))
    return 100 * (other - one) / (other + one)


def table():
    models = (of_two_figures(), of_three_figures())
    lines = ["                                             two figures set it       and a third one, of add",
             "          outstanding  memory  published us  modelled us    off, %     modelled us    off, %"]
    for case, published in PUBLISHED_US.items():
        line = f"{case[0]:<9} {case[1]:>11}  {case[2]:<6} {published:>13.3f}"
        for model, gap in zip(models, ("  ", "     ")):
            off = "set" if case in model.set_by else f"{model.difference_percent(case):+.1f}"
            line += f"{gap}{model.time_us(*case):>11.3f} {off:>9}"
        lines.append(line)
    lines.append("")
    for name, model in zip(("two figures", "three figures"), models):
        add = f", add {model.add_us:.3f}" if model.add_us else ""
        lines.append(f"{name}: network {model.network_us:.3f} us, card {model.card_us:.3f}, PCIe {model.pcie_us:.3f}"
                     f"{add}; {len(model.within())} of {len(model.predicted())} predicted within {LIMIT_PERCENT} %")
    return "\n".join(lines)
