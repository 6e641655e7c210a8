"""The exchange, event by event: every core, port and command of every node, each used by one at a time, in order of
arrival. Exact for the rules of exchange.py, but a Python loop: some five events for each message.

    result = simulate(Exchange(nodes=4, processes=4), Cost(...), table.scalars)
    result.time_ns, result.counts["gets"]
"""
import collections
import dataclasses
import heapq

from exchange import message_time_ns

MAX_RANKS = 2048

(IMPORT, IMPORTED, READY, POST, DEPART, GOT, END, RELEASED, UNMAP) = range(9)
SEND, RECEIVE = range(2)


@dataclasses.dataclass(frozen=True)
class Result:
    time_ns: float
    counts: dict  # of all processes together


class Simulation:
    def __init__(self, exchange, cost, scalars):
        self.exchange = exchange
        self.cost = cost
        self.scalars = scalars
        self.per_message = exchange.buffers == "message"
        self.ranks = exchange.ranks
        self.occupied_ns = message_time_ns(scalars, exchange.message_bytes)
        self.latency = scalars["message_latency"]
        self.half_read = scalars["read_latency"] / 2
        self.message = scalars["service_message"]
        self.host_free = [0.0] * self.ranks
        self.service_free = [0.0] * (exchange.nodes * exchange.services)
        self.out_free = [0.0] * exchange.nodes
        self.in_free = [0.0] * exchange.nodes
        # When each of the commands that a card carries out at a time ends; empty: no limit.
        self.commands = [[0.0] * int(scalars["card_commands"]) for _ in range(exchange.nodes)]
        # By direction and process.
        self.opened = [[0] * self.ranks for _ in range(2)]
        self.finished = [[0] * self.ranks for _ in range(2)]
        self.is_imported = [[False] * self.ranks for _ in range(2)]
        self.ready = [set() for _ in range(self.ranks)]      # steps whose receive buffer is there
        self.announced = [set() for _ in range(self.ranks)]  # steps whose send buffer is there
        self.counts = collections.Counter()
        self.heap = []
        self.number = 0
        self.last = 0.0

    def at(self, time, kind, rank, direction=0, step=0):
        self.number += 1
        heapq.heappush(self.heap, (time, self.number, kind, rank, direction, step))

    def node(self, rank):
        return rank // self.exchange.processes

    def use(self, free, index, now, busy):
        end = max(now, free[index]) + busy
        free[index] = end
        if end > self.last:
            self.last = end
        return end

    def use_with_command(self, free, index, node, now, busy, command):
        """The core waits for its command, which may wait for those of others."""
        begin = max(now, free[index]) + busy
        lanes = self.commands[node]
        if command and lanes:
            begin = max(begin, lanes[0])
            heapq.heapreplace(lanes, begin + command)
        return self.use(free, index, begin, command)

    def service(self, rank, now, busy, command=0.0):
        node, process = divmod(rank, self.exchange.processes)
        index = node * self.exchange.services + process % self.exchange.services
        if command:
            return self.use_with_command(self.service_free, index, node, now, busy, command)
        return self.use(self.service_free, index, now, busy)

    def map_buffer(self, rank, direction, step, now):
        self.counts["exports"] += 1
        cost = self.cost
        end = self.use_with_command(self.host_free, rank, self.node(rank), now,
                                    self.scalars["lookup"] + cost.host_map + self.scalars["host_message"],
                                    cost.host_map_commands)
        self.at(end + self.latency, IMPORT, rank, direction, step)

    def release_buffer(self, rank, direction, now):
        """The service lets it go and tells the host, which may go on as soon as it is told."""
        end = self.service(rank, now, self.message)
        self.at(end + self.latency, UNMAP, rank, direction)
        self.at(end, RELEASED, rank)

    def open_next(self, rank, direction, now):
        step = self.opened[direction][rank]
        if step == self.ranks:
            return
        self.opened[direction][rank] = step + 1
        if self.per_message:
            self.map_buffer(rank, direction, step, now)
        else:
            self.buffer_is_there(rank, direction, step, now)

    def buffer_is_there(self, rank, direction, step, now):
        if direction == SEND:
            self.counts["messages"] += 1
            self.at(self.service(rank, now, self.message) + self.latency, READY, (rank - step) % self.ranks, SEND, step)
        elif step in self.announced[rank]:
            self.announced[rank].remove(step)
            self.get(rank, step, now)
        else:
            self.ready[rank].add(step)

    def get(self, rank, step, now):
        self.at(self.service(rank, now, self.scalars["service_get"]), POST, rank, RECEIVE, step)

    def finish(self, rank, direction, now):
        """One message of that process has ended."""
        self.finished[direction][rank] += 1
        if self.per_message:
            self.release_buffer(rank, direction, now)
            return
        self.open_next(rank, direction, now)
        if self.finished[SEND][rank] == self.finished[RECEIVE][rank] == self.ranks:
            self.release_buffer(rank, SEND, now)
            self.release_buffer(rank, RECEIVE, now)

    def start(self):
        window = min(self.exchange.in_flight, self.ranks)
        for rank in range(self.ranks):
            if self.per_message:
                for _ in range(window):
                    self.open_next(rank, SEND, 0.0)
                    self.open_next(rank, RECEIVE, 0.0)
            else:
                self.map_buffer(rank, SEND, 0, 0.0)
                self.map_buffer(rank, RECEIVE, 0, 0.0)

    def handle(self, now, kind, rank, direction, step):
        if kind == IMPORT:
            self.counts["imports"] += 1
            busy = self.message + self.scalars["lookup"]
            self.at(self.service(rank, now, busy, self.cost.dpu_import), IMPORTED, rank, direction, step)
        elif kind == IMPORTED:
            if self.per_message:
                self.buffer_is_there(rank, direction, step, now)
            else:
                for _ in range(min(self.exchange.in_flight, self.ranks)):
                    self.open_next(rank, direction, now)
        elif kind == READY:
            end = self.service(rank, now, self.message)
            if step in self.ready[rank]:
                self.ready[rank].remove(step)
                self.get(rank, step, end)
            else:
                self.announced[rank].add(step)
        elif kind == POST:
            self.counts["gets"] += 1
            self.counts["bytes"] += self.exchange.message_bytes
            source = self.node((rank + step) % self.ranks)
            asked = now + self.half_read
            begin = max(asked, self.out_free[source])
            self.out_free[source] = begin + self.occupied_ns
            self.at(begin + self.half_read, DEPART, rank, RECEIVE, step)
        elif kind == DEPART:
            target = self.node(rank)
            end = max(now, self.in_free[target]) + self.occupied_ns
            self.in_free[target] = end
            self.at(end, GOT, rank, RECEIVE, step)
        elif kind == GOT:
            self.counts["messages"] += 1
            end = self.service(rank, now, self.message)
            self.at(end + self.latency, END, (rank + step) % self.ranks, SEND, step)
            self.finish(rank, RECEIVE, end)
        elif kind == END:
            self.finish(rank, SEND, self.service(rank, now, self.message))
        elif kind == RELEASED:
            if self.cost.dpu_release:
                self.service(rank, now, 0.0, self.cost.dpu_release)
        elif kind == UNMAP:
            self.counts["unmaps"] += 1
            end = self.use_with_command(self.host_free, rank, self.node(rank), now,
                                        self.scalars["host_message"] + self.cost.host_unmap,
                                        self.cost.host_unmap_commands)
            if self.per_message:
                self.open_next(rank, direction, end)

    def run(self):
        self.start()
        while self.heap:
            now, _, kind, rank, direction, step = heapq.heappop(self.heap)
            self.handle(now, kind, rank, direction, step)
        return Result(self.last, dict(self.counts))


def simulate(exchange, cost, scalars):
    return Simulation(exchange, cost, scalars).run()
