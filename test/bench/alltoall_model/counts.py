"""What an exchange counts, process by process, without simulating it; and whether counts of examples/offload_alltoallv
are the same (README.md describes its file).

    traffic = uniform(hosts=4, rounds=1, message_bytes=16384); per_host, per_dpu = expected(traffic)
"""
import dataclasses

import numpy

from costs import SCHEMES, Refused, is_whole, parse_json, read_text

MAX_HOSTS = 4096
MAX_ROUNDS = 1 << 20
MAX_MESSAGES = 1 << 24
UNIT_BYTES = 64        # of the example's lengths
EMPTY_ONE_OF = 8       # so many of its messages are empty
FORMS, PLAIN = 3, 0    # of its memory; the others are windows
SIZES = {"hosts": MAX_HOSTS, "rounds": MAX_ROUNDS, "max_bytes": 1 << 40, "message_bytes": 1 << 40}


# Spare keys of a host process: UCX_LAYOUT_KEYS_EXPORT_SPARE for buffers, and as many for windows.
MOST_ANNOUNCED = 2 * 16


@dataclasses.dataclass(frozen=True)
class Traffic:
    """Of each round, sender and receiver: how long the message is, whether the receiver's service gets it (the sender's
    puts it otherwise), and at which ends its memory is a window."""

    lengths: numpy.ndarray
    is_pulled: numpy.ndarray
    is_sent_from_window: numpy.ndarray
    is_received_in_window: numpy.ndarray


def checked_shape(hosts, rounds):
    if rounds * hosts * hosts > MAX_MESSAGES:
        raise Refused(f"{rounds} rounds of {hosts} hosts are more than {MAX_MESSAGES} messages")
    return rounds, hosts, hosts


def uniform(hosts, rounds, message_bytes):
    shape = checked_shape(hosts, rounds)
    no_window = numpy.zeros(shape, bool)
    return Traffic(numpy.full(shape, message_bytes, numpy.uint64), numpy.ones(shape, bool), no_window, no_window)


def mixed(number):
    """The finalizer of splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014)."""
    number = (number ^ (number >> numpy.uint64(30))) * numpy.uint64(0xbf58476d1ce4e5b9)
    number = (number ^ (number >> numpy.uint64(27))) * numpy.uint64(0x94d049bb133111eb)
    return number ^ (number >> numpy.uint64(31))


def chosen(numbers, seed, purpose):
    """A number for each message; every sum is modulo 2^64."""
    with numpy.errstate(over="ignore"):
        state = mixed(numpy.full(numbers.shape[1:], seed, numpy.uint64) + numpy.uint64(1))
        for part in (*numbers, numpy.uint64(purpose)):
            state = mixed(state + numpy.uint64(0x9e3779b97f4a7c15) * (part + numpy.uint64(1)))
    return state


def of_example(hosts, rounds, max_bytes, seed):
    """What exchange_plan.cc of the example chooses."""
    numbers = numpy.indices(checked_shape(hosts, rounds), numpy.uint64)
    state = chosen(numbers, seed, 0)
    units = numpy.uint64(1) + (state >> numpy.uint64(8)) % numpy.uint64(max_bytes // UNIT_BYTES)
    lengths = numpy.where(state % numpy.uint64(EMPTY_ONE_OF) == 0, numpy.uint64(0), units * numpy.uint64(UNIT_BYTES))
    is_sent, is_received = (chosen(numbers, seed, purpose) % numpy.uint64(FORMS) != PLAIN for purpose in (1, 2))
    return Traffic(lengths, numbers.sum(0) % numpy.uint64(2) == 0, is_sent, is_received)


def expected(traffic):
    """Counts of each host, and of each DPU process; a range where more than one number is right.

    Each message has a buffer of its own on both sides, all of a round at the same time. Empty ones have none.
    """
    there = traffic.lengths > 0
    pulled, pushed = there & traffic.is_pulled, there & ~traffic.is_pulled
    sent, received = traffic.lengths.sum((0, 2)), traffic.lengths.sum((0, 1))
    get_bytes = (traffic.lengths * pulled).sum((0, 1))
    put_bytes = (traffic.lengths * pushed).sum((0, 2))
    buffers = there.sum(2) + there.sum(1)  # of each round and host
    windows = (there & traffic.is_sent_from_window).sum((0, 2)) + (there & traffic.is_received_in_window).sum((0, 1))
    per_host, per_dpu = [], []
    for host in range(traffic.lengths.shape[1]):
        exports = int(buffers[:, host].sum())
        gets, puts = int(pulled[:, :, host].sum()), int(pushed[:, host, :].sum())
        asked = int(pulled[:, host, :].sum() + pushed[:, :, host].sum())
        most_binds = exports + int(windows[host])  # a window has a key of its own, too
        per_host.append({"exports": exports, "windows": int(windows[host]), "bytes_sent": int(sent[host]),
                         "bytes_received": int(received[host]), "binds": (exports, most_binds),
                         # UCX deregisters with its next call, which the last buffers do not have.
                         "invalidations": (exports - int(buffers[-1, host]), most_binds)})
        per_dpu.append({"imports": exports, "gets": gets, "puts": puts, "get_bytes": int(get_bytes[host]),
                        "put_bytes": int(put_bytes[host]), "keys_packed": asked, "keys_unpacked": gets + puts,
                        # A key of the pool that is used again needs no other alias. Those in use together differ.
                        # Keys that the host has announced have aliases before they are used.
                        "aliases": (int(buffers[:, host].max()), exports + MOST_ANNOUNCED)})
    return per_host, per_dpu


def of_exchange(exchange, name):
    """What one exchange counts by that scheme, all processes together, when pool and caches are warm."""
    scheme = SCHEMES[name]
    messages = exchange.ranks * exchange.ranks
    buffers = 2 * (messages if exchange.buffers == "message" else exchange.ranks)
    return {"exports": buffers, "imports": buffers, "unmaps": buffers, "gets": messages, "messages": 2 * messages,
            "bytes": messages * exchange.message_bytes, "aliases": 0 if scheme.is_pool else buffers,
            "binds": scheme.map_requests * buffers, "invalidations": scheme.unmap_requests * buffers,
            "commands": buffers * sum(len(part) for part in (scheme.host_map_commands, scheme.host_unmap_commands,
                                                             scheme.dpu_import, scheme.dpu_release))}


def traffic_of(counted, name):
    for field in ("hosts", "rounds"):
        if not is_whole(counted.get(field)) or not 1 <= counted[field] <= SIZES[field]:
            raise Refused(f"{name}: {field} is not a whole number in 1 .. {SIZES[field]}")
    uniform_bytes = "message_bytes" in counted
    field = "message_bytes" if uniform_bytes else "max_bytes"
    least = 1 if uniform_bytes else UNIT_BYTES
    if not is_whole(counted.get(field)) or not least <= counted[field] <= SIZES[field]:
        raise Refused(f"{name}: {field} is not a whole number in {least} .. {SIZES[field]}")
    if uniform_bytes:
        return uniform(counted["hosts"], counted["rounds"], counted["message_bytes"])
    if not is_whole(counted.get("seed")) or not 0 <= counted["seed"] < 1 << 64:
        raise Refused(f"{name}: seed is not a whole number below 2^64")
    return of_example(counted["hosts"], counted["rounds"], counted["max_bytes"], counted["seed"])


def is_right(count, wanted):
    if not is_whole(count):
        return False
    if isinstance(wanted, tuple):
        return wanted[0] <= count <= wanted[1]
    return count == wanted


def shown(wanted):
    return f"{wanted[0]} .. {wanted[1]}" if isinstance(wanted, tuple) else str(wanted)


def validate(path):
    """Returns how many counts were compared, and a line for each that differs. The file is the example's output, of
    which the last line counts."""
    lines = read_text(path).strip().splitlines()
    counted = parse_json(lines[-1] if lines else "", path)
    if not isinstance(counted, dict):
        raise Refused(f"{path}: its last line is not a JSON object")
    wrong, compared = [], 0
    for kind, right in zip(("host", "dpu"), expected(traffic_of(counted, path))):
        rows = counted.get(kind)
        if not isinstance(rows, list) or len(rows) != len(right) or not all(isinstance(row, dict) for row in rows):
            raise Refused(f"{path}: {kind} is not a list with an object for each of {len(right)} hosts")
        for number, (row, wants) in enumerate(zip(rows, right)):
            for name, wanted in wants.items():
                compared += 1
                if not is_right(row.get(name), wanted):
                    wrong.append(f"{kind}[{number}]: {name} is {row.get(name)}, the model has {shown(wanted)}")
    return compared, wrong
