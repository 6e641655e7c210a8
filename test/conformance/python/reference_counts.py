"""Does each of the package's operations many times in a debug build of CPython, which counts all references, and ends
with status 1 if one of them leaves references behind, or takes some that are not its own.

usage: reference_counts.py [FILTER]

No NumPy: its extension modules are no debug build and count nothing, so the sum would not be right.
"""
import array
import gc
import pickle
import sys

import ucx_layout as ul

ROUNDS, TIMES = 4, 100
MOST = TIMES // 2  # what the counting itself leaves, and other threads

OFFSETS = array.array("q", range(0, 800, 8))
SOURCE, TARGET, PACKED = bytearray(range(256)) * 4, bytearray(1024), bytearray(400)
TABLE = ul.blocks(OFFSETS, 4)
SHARED = memoryview(bytearray(1 << 16))
RELEASED = memoryview(b"abc")
RELEASED.release()
RECORDS = [ul.Item(12, 4, 12), ul.Item(2, 4, 2, source=1)]


class Dlpack:
    """Says that it is of a GPU, or what no array is."""

    def __init__(self, device, capsule=None):
        self.device, self.capsule = device, capsule

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **_):
        return self.capsule


class Interface:
    def __init__(self, **entries):
        self.__array_interface__ = entries


def refused(function, *arguments, **keywords):
    def call():
        try:
            function(*arguments, **keywords)
        except Exception:  # noqa: which one it is, the package's own tests tell
            return
        raise AssertionError("it was not refused")
    return call


def exposed_memory():
    memory = ul.memory(4096)
    view = memoryview(memory)
    view[0] = 1
    refused(memory.close)()
    view.release()
    memory.close()


def memory_by_block():
    with ul.memory(100) as memory:
        return memory.address, memory.length, memory.closed


def window():
    with ul.window(SOURCE, layout=TABLE) as opened:
        return opened.address, opened.length, opened.nbytes, opened.layout, opened.read_only, opened.carrier


def window_left_open():
    return ul.window([SOURCE, TARGET], layout=ul.interleaved(RECORDS))


def window_over_memory():
    memory = ul.memory(4096)
    with ul.window(memory, layout=TABLE) as opened:
        return opened.carrier


def workers():
    worker = ul._core.Worker()
    worker.address()
    exposed = worker.expose(SOURCE, TABLE)
    exposed.key, exposed.length  # noqa: to read them is the operation
    exposed.close()
    worker.close()


def message_to_itself():
    worker = ul._core.Worker()
    worker.connect(worker.address())
    got = worker.recv(TARGET, TABLE, 5)
    sent = worker.send(PACKED, None, 5)
    while not (got.done and sent.done):
        worker.progress()
    got.result(), sent.result()
    worker.close()


OPERATIONS = {
    "contiguous": lambda: ul.contiguous(8, 5),
    "strided": lambda: ul.strided(ul.contiguous(4), [3, 4], [100, 8]),
    "blocks": lambda: ul.blocks(OFFSETS, 4),
    "blocks/list": lambda: ul.blocks([3, 1, 2], [1, 2, 3], unit=8),
    "blocks/of-layouts": lambda: ul.blocks(OFFSETS, ul.strided(1, 2, 2)),
    "concatenate": lambda: ul.concatenate([ul.Part(4, 0), ul.Part(ul.contiguous(8), 100, 1)]),
    "interleaved": lambda: ul.interleaved(iter(RECORDS)),
    "resized": lambda: ul.resized(TABLE, -8, 4000),
    "parse": lambda: ul.parse(str(TABLE)),
    "layout_of": lambda: ul.layout_of(memoryview(SOURCE).cast("i", (16, 16))[::2]),
    "layout/text": lambda: (str(TABLE), repr(TABLE), TABLE.describe(), TABLE.svg(), TABLE._repr_html_()),
    "layout/numbers": lambda: (TABLE.packed_length, TABLE.num_sources, TABLE.extent, TABLE.num_blocks, TABLE.depth,
                               TABLE.bounds, TABLE.overlaps, TABLE.blocks(5), hash(TABLE), TABLE == TABLE, TABLE == 3),
    "layout/bytes": lambda: ul.Layout.from_bytes(TABLE.to_bytes()),
    "layout/pickle": lambda: pickle.loads(pickle.dumps(TABLE)),
    "gather": lambda: ul.gather(SOURCE, PACKED, layout=TABLE),
    "gather/sources": lambda: ul.gather([SOURCE, memoryview(TARGET)], bytearray(56), layout=ul.interleaved(RECORDS)),
    "scatter": lambda: ul.scatter(PACKED, TARGET, layout=TABLE),
    "copy": lambda: ul.copy(SOURCE, TARGET, source_layout=TABLE, target_layout=TABLE),
    "copy/views": lambda: ul.copy(memoryview(SOURCE)[::-2], memoryview(TARGET)[::2]),
    "memory": exposed_memory,
    "memory/block": memory_by_block,
    "memory/forgotten": lambda: ul.memory(1),
    "share": lambda: ul.share(SHARED),
    "window": window,
    "window/forgotten": window_left_open,
    "window/memory": window_over_memory,
    "worker": workers,
    "worker/message": message_to_itself,
    "attach": ul.attach,
    "refused/parse": refused(ul.parse, "strided(3,"),
    "refused/offsets": refused(ul.blocks, array.array("d", [1.0]), 8),
    "refused/text": refused(ul.blocks, "abc", 8),
    "refused/element": refused(ul.blocks, ["a"], 8),
    "refused/length": refused(ul.blocks, [1, 2], [3, -5]),
    "refused/number": refused(ul.contiguous, 2**70),
    "refused/part": refused(ul.concatenate, [3]),
    "refused/item": refused(ul.interleaved, [(1, 2)]),
    "refused/bytes": refused(ul.Layout.from_bytes, b"\1\2\3"),
    "refused/no-array": refused(ul.layout_of, object()),
    "refused/read-only": refused(ul.scatter, PACKED, bytes(1024), layout=TABLE),
    "refused/size": refused(ul.gather, SOURCE, bytearray(3), layout=TABLE),
    "refused/released": refused(ul.gather, RELEASED, bytearray(3)),
    "refused/range": refused(ul.gather, bytearray(7), PACKED, layout=TABLE),
    "refused/gpu": refused(ul.layout_of, Dlpack((2, 0))),
    "refused/device": refused(ul.layout_of, Dlpack(("one", 0))),
    "refused/no-pair": refused(ul.layout_of, Dlpack(7)),
    "refused/capsule": refused(ul.layout_of, Dlpack((1, 0), "no capsule")),
    "refused/interface": refused(ul.layout_of, Interface(version=3, shape=("a",), typestr="<f8", data=(0, False))),
    "refused/memory": refused(ul.memory, -1),
    "refused/window": refused(ul.window, bytearray(7), layout=TABLE),
}


def count():
    """All references, but those to nanobind's type of bound methods: each bound method leaves one there (nanobind 2.5:
    nb_bound_method_dealloc() does not give it back). Nothing is lost by it but the count."""
    for _ in range(3):
        gc.collect()
    return sys.gettotalrefcount() - sys.getrefcount(type(TABLE.describe))


def change_by(operation):
    """The least of some measurements: a cache may grow once, but a leak is in each."""
    changes = []
    for _ in range(ROUNDS):
        before = count()
        for _ in range(TIMES):
            operation()
        changes.append(count() - before)
    return min(changes, key=abs)


def main():
    if not hasattr(sys, "gettotalrefcount"):
        sys.exit("reference_counts: this Python counts no references; a debug build does (python3-dbg)")
    chosen = {name: call for name, call in OPERATIONS.items() if len(sys.argv) < 2 or sys.argv[1] in name}
    num_bad = 0
    for name, operation in chosen.items():
        change = change_by(operation)
        if abs(change) > MOST:
            num_bad += 1
            print(f"{name}: {TIMES} times changed the number of references by {change}", flush=True)
    print(f"{len(chosen)} operations, {ROUNDS} times {TIMES} each: {num_bad} change the number of references")
    sys.exit(1 if num_bad or not chosen else 0)


if __name__ == "__main__":
    main()
