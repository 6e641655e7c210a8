"""An MPI_Alltoall whose data DPU service processes move, and what one transfer of it goes through.

Every process of `nodes` x `processes` has a message for every process, itself too. A node's DPU has `services` service
processes; process p of a node is served by service p % services. A message goes like this:

    host of the source   maps the send buffer, exports it to its service
    service of the source   imports it, packs a remote key and announces the message to the other service
    host of the target   maps the receive buffer, exports it to its service
    service of the target   imports it, and gets the message once it was announced; announces the end
    both                 services release, hosts unmap

Each process has at most `in_flight` sends and as many receives open. In step k it sends to process (rank - k) and
receives from (rank + k), as the pairwise algorithm of UCC does ("O(N) pairwise exchange with adjustable number of
outstanding sends/recvs", openucx/ucc, src/components/tl/ucp/alltoallv).

Buffers are temporary: with "call" a process allocates one buffer for all that it sends in a call and one for all that
it receives; with "message" it allocates two for each message.
"""
import dataclasses

from costs import Refused, is_whole

LIMITS = {"nodes": 10000, "processes": 1024, "services": 1024, "in_flight": 65536, "message_bytes": 1 << 30,
          "exchanges": 1 << 20}


@dataclasses.dataclass(frozen=True)
class Exchange:
    nodes: int = 32
    processes: int = 32
    services: int = 4
    in_flight: int = 4
    message_bytes: int = 16 << 10
    buffers: str = "call"

    def __post_init__(self):
        for name in ("nodes", "processes", "services", "in_flight", "message_bytes"):
            check_whole(name, getattr(self, name))
        if self.services > self.processes:
            raise Refused(f"services: {self.services} are more than the {self.processes} processes of a node")
        if self.buffers not in ("call", "message"):
            raise Refused(f"buffers: '{self.buffers}' is none of call, message")

    @property
    def ranks(self):
        return self.nodes * self.processes

    @property
    def served(self):
        """Processes of the busiest service."""
        return -(-self.processes // self.services)

    @property
    def buffer_bytes(self):
        return self.message_bytes * (self.ranks if self.buffers == "call" else 1)

    def with_bytes(self, message_bytes):
        return dataclasses.replace(self, message_bytes=message_bytes)


def check_whole(name, value):
    if not is_whole(value) or not 1 <= value <= LIMITS[name]:
        raise Refused(f"{name}: {value} is not a whole number in 1 .. {LIMITS[name]}")


def message_time_ns(scalars, message_bytes):
    """How long one message occupies a port of a card."""
    bytes_per_ns = scalars["link_rate"] / 8 * scalars["network_efficiency"]
    return max(message_bytes / bytes_per_ns, 1e3 / scalars["message_rate"])
