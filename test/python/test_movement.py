"""gather(), scatter() and copy(): every byte, what is refused, references and threads."""
import concurrent.futures
import ctypes
import gc
import subprocess
import sys
import threading
import unittest

import numpy as np
import ucx_layout as ul
from oracle import memory_of, packed_bytes, random_numbers, random_view, written_bytes


class OnDevice:
    """An array that says by DLPack that it is on a device."""

    def __init__(self, kind):
        self.kind = kind

    def __dlpack_device__(self):
        return (self.kind, 0)

    def __dlpack__(self, **_):
        raise AssertionError("asked for memory of a device")


class OnlyDLPack:
    """An array of NumPy without the buffer protocol, as tensors of torch are."""

    def __init__(self, array):
        self.array, self.exports = array, 0

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, **keywords):
        self.exports += 1
        return self.array.__dlpack__(**keywords)


class CopyByDLPack(OnlyDLPack):
    """An array that can only be handed over as a copy."""

    def __dlpack__(self, **keywords):
        return self.array.__dlpack__(copy=True, **keywords)


class OldDLPack(OnlyDLPack):
    def __dlpack__(self, stream=None):
        return self.array.__dlpack__()


class Movement(unittest.TestCase):
    def test_gather_is_what_the_oracle_reads(self):
        numbers = random_numbers("gather")
        for _ in range(300):
            view = random_view(numbers, writable=numbers.random() < 0.5)
            packed = ul.gather(view)
            self.assertEqual(packed.tobytes(), packed_bytes(view), (view.shape, view.strides, view.dtype))
            self.assertEqual((packed.shape, packed.dtype), (view.shape, view.dtype))
            out = np.empty(view.nbytes, np.uint8)
            self.assertIs(ul.gather(view, out), out)
            self.assertEqual(out.tobytes(), packed_bytes(view))

    def test_scatter_writes_its_elements_and_no_other_byte(self):
        numbers = random_numbers("scatter")
        for _ in range(300):
            view = random_view(numbers)
            packed = numbers.randbytes(view.nbytes)
            whole = memory_of(view)
            wanted = written_bytes(whole, view, packed)
            ul.scatter(packed, view)
            self.assertEqual(whole.tobytes(), wanted, (view.shape, view.strides, view.dtype))

    def test_copy_between_any_two_views_of_the_same_size(self):
        numbers = random_numbers("copy")
        for _ in range(300):
            source = random_view(numbers, "i4")
            shape = numbers.sample(source.shape, source.ndim)
            whole = np.zeros([2 * each for each in shape] or (), "i4")
            target = whole[tuple(slice(numbers.choice([0, 1]), None, 2) for _ in shape)] if shape else whole
            ul.copy(source, target)
            self.assertEqual(packed_bytes(target), packed_bytes(source))

    def test_memory_that_overlaps_is_read_before_it_is_written(self):
        a = np.arange(24).reshape(4, 6)
        ul.copy(a[:, 1:5], a[:, 2:6])
        np.testing.assert_array_equal(a[0], [0, 1, 1, 2, 3, 4])
        b = np.arange(10)
        ul.copy(b, b[::-1])
        np.testing.assert_array_equal(b, np.arange(10)[::-1])
        c = np.arange(16)
        ul.gather(c[8:][::-1], c[4:12])
        np.testing.assert_array_equal(c[4:12], np.arange(16)[8:][::-1])
        d = np.arange(16)
        ul.scatter(d[:8], d[4:12][::-1])
        np.testing.assert_array_equal(d[4:12], np.arange(8)[::-1])

    def test_a_block_table_picks_blocks_of_a_cache(self):
        cache = np.random.default_rng(3).integers(0, 256, (2000, 512), np.uint8)
        table = np.random.default_rng(4).permutation(2000)[:1500].astype(np.int32)
        layout = ul.blocks(table, 512, unit=512)
        packed = ul.gather(cache, layout=layout)
        np.testing.assert_array_equal(packed.reshape(-1, 512), cache[table])
        other = np.zeros_like(cache)
        ul.scatter(packed, other, layout=layout)
        np.testing.assert_array_equal(other[table], cache[table])
        self.assertEqual(np.count_nonzero(other.any(1)), np.count_nonzero(cache[table].any(1)))
        third = np.zeros_like(cache)
        ul.copy(cache, third, source_layout=layout, target_layout=layout)
        np.testing.assert_array_equal(third, other)

    def test_records_out_of_several_arrays(self):
        positions, colours = np.arange(12, dtype="f4"), np.arange(8, dtype="u1")
        layout = ul.interleaved([ul.Item(12, 4, 12), ul.Item(2, 4, 2, source=1)])
        records = np.zeros(4, [("position", "f4", 3), ("colour", "u1", 2)])
        ul.gather([positions, colours], records, layout=layout)
        np.testing.assert_array_equal(records["position"], positions.reshape(4, 3))
        np.testing.assert_array_equal(records["colour"], colours.reshape(4, 2))
        back = np.zeros_like(positions), np.zeros_like(colours)
        ul.scatter(records, list(back), layout=layout)
        np.testing.assert_array_equal(back[0], positions)
        np.testing.assert_array_equal(back[1], colours)

    def test_any_buffer_is_an_array(self):
        out = bytearray(3)
        ul.gather(memoryview(b"abcdef")[::2], out)
        self.assertEqual(out, b"ace")
        numbers = (ctypes.c_int * 4)()
        ul.scatter(np.arange(4, dtype="i4"), numbers)
        self.assertEqual(list(numbers), [0, 1, 2, 3])

    def test_dlpack_of_both_versions(self):
        a = np.arange(12.0).reshape(3, 4)
        for kind in (OnlyDLPack, OldDLPack):
            np.testing.assert_array_equal(ul.gather(kind(a[:, ::-2]), np.zeros((3, 2))), a[:, ::-2])
            target = kind(np.zeros((3, 4)))
            ul.copy(a, target)
            np.testing.assert_array_equal(target.array, a)

    def test_threads_copy_at_the_same_time(self):
        source = np.arange(1 << 20).reshape(1024, 1024)
        wanted = source[:, ::2].tobytes()

        def work():
            return [ul.gather(source[:, ::2]).tobytes() == wanted for _ in range(5)]

        with concurrent.futures.ThreadPoolExecutor(4) as threads:
            started = [threads.submit(work) for _ in range(4)]
        for each in started:
            self.assertEqual(each.result(), [True] * 5)

    def test_long_copies_run_without_the_gil(self):
        source = np.zeros((1 << 14, 1 << 10), np.uint8)[:, ::2]
        out = np.empty(source.shape, np.uint8)
        interval = sys.getswitchinterval()
        sys.setswitchinterval(1000)  # nobody else runs unless the GIL is given away
        try:
            ran, begun, done = [], threading.Event(), threading.Event()

            def work():
                begun.wait(10)
                ran.append(done.is_set())

            other = threading.Thread(target=work)
            other.start()
            begun.set()
            for _ in range(20):
                ul.gather(source, out)
            done.set()
            other.join()
        finally:
            sys.setswitchinterval(interval)
        self.assertEqual(ran, [False])

    def test_no_reference_is_kept_or_lost(self):
        a, out, layout = np.arange(64.0).reshape(8, 8), np.zeros(8), ul.strided(8, 8, 64)
        tensor, table = OnlyDLPack(a), np.arange(8)
        bad = np.zeros(3)

        def all_operations():
            ul.gather(a[:, 1], out)
            ul.gather(a, out, layout=layout)
            ul.scatter(out, a, layout=layout)
            ul.copy(a[:, 1], out)
            ul.gather(tensor)
            ul.layout_of(a)
            ul.blocks(table, 8)
            for call in (lambda: ul.gather(a, bad), lambda: ul.gather(tensor, bad),
                         lambda: ul.gather(bad, layout=layout)):
                with self.assertRaises((ValueError, IndexError)):
                    call()

        objects = (a, out, layout, tensor, table, bad)
        all_operations()
        gc.collect()
        before = [sys.getrefcount(each) for each in objects]
        for _ in range(100):
            all_operations()
        gc.collect()
        self.assertEqual([sys.getrefcount(each) for each in objects], before)

    def test_buffers_are_not_kept_exported(self):
        for call in (lambda data: ul.gather(data), lambda data: ul.gather(data, np.zeros(1)), ul.layout_of,
                     lambda data: ul.gather(data, layout=ul.contiguous(100))):
            data = bytearray(10)
            try:
                call(data)
            except (ValueError, IndexError):
                pass
            data.append(1)  # raises BufferError while it is exported


class BadInput(unittest.TestCase):
    def check(self, kind, message, function, *arguments, **keywords):
        with self.assertRaisesRegex(kind, message):
            function(*arguments, **keywords)

    def test_names_the_argument(self):
        a, out = np.arange(12.0).reshape(3, 4), np.zeros(3)
        fixed = np.zeros(3)
        fixed.flags.writeable = False
        self.check(ValueError, "^out: the array is read-only", ul.gather, a[:, 1], fixed)
        self.check(ValueError, "^target: the array is read-only", ul.scatter, out, fixed)
        self.check(ValueError, "^target: the array is read-only", ul.copy, out, fixed)
        self.check(ValueError, "^out: the array is read-only", ul.gather, b"abc", b"abc")
        self.check(ValueError, "^out: .*not contiguous", ul.gather, a[:, 1], np.zeros(6)[::2])
        self.check(ValueError, "^packed: .*not contiguous", ul.scatter, np.zeros(6)[::2], a[:, 1])
        self.check(ValueError, "^out: 32 bytes, source has 24", ul.gather, a[:, 1], np.zeros(4))
        self.check(ValueError, "^packed: 32 bytes, target has 24", ul.scatter, np.zeros(4), a[:, 1])
        self.check(ValueError, "^target: 32 bytes, source has 24", ul.copy, a[:, 1], np.zeros(4))
        self.check(TypeError, "^out: int64, source has float64", ul.gather, a[:, 1], np.zeros(3, int))
        self.check(TypeError, "^packed: int64, target has float64", ul.scatter, np.zeros(3, int), out)
        self.check(TypeError, "^target: float64 with its bytes swapped, source has", ul.copy, out, np.zeros(3, ">f8"))
        self.check(TypeError, "^source: 'list' is no array", ul.gather, [1, 2])
        self.check(TypeError, "^out: 'int' is no array", ul.gather, a, 3)
        self.check(TypeError, "^source: the elements are Python objects", ul.gather, np.array([None, a], object))

    def test_layouts_that_leave_their_array(self):
        cache = np.zeros((10, 16), np.uint8)
        for table in ([10], [-1], [3, 9, 10]):
            self.check(IndexError, "^source: the layout reaches .* of source 0", ul.gather, cache,
                       layout=ul.blocks(table, 16, unit=16))
        self.check(IndexError, "^target: ", ul.scatter, np.zeros(16, "u1"), cache, layout=ul.blocks([10], 16, unit=16))
        ul.gather(cache[::-1], layout=ul.blocks([-9, 0], 16, unit=16))  # the array's own bytes are before its first one
        self.check(ValueError, "^source: 1 array, the layout has 2 sources", ul.gather, cache,
                   layout=ul.interleaved([ul.Item(1, 1, 1), ul.Item(1, 1, 1, source=1)]))

    def test_targets_whose_elements_share_bytes(self):
        shared = np.lib.stride_tricks.as_strided(np.zeros(4), (3, 2), (8, 8))
        self.check(ValueError, "^target: .* more than once", ul.scatter, np.zeros((3, 2)), shared)
        self.check(ValueError, "^target: .* more than once", ul.scatter, np.zeros(16, "u1"), np.zeros(100, "u1"),
                   layout=ul.blocks([0, 4], 8))

    def test_arrays_on_a_device_are_refused_with_the_reason(self):
        self.check(BufferError, r"^source: .* \(CUDA, DLPack device type 2", ul.gather, OnDevice(2))
        self.check(BufferError, r"^source: .* \(ROCm, DLPack device type 10", ul.gather, OnDevice(10))
        self.check(BufferError, r"^out: ", ul.gather, np.zeros(3), OnDevice(2))

        class OnlyCuda:
            __cuda_array_interface__ = {"data": (4096, False), "shape": (3,), "typestr": "<f8", "version": 3}

        self.check(BufferError, r"^source: the array is in memory of a GPU", ul.gather, OnlyCuda())

    @unittest.skipIf(np.lib.NumpyVersion(np.__version__) < "2.1.0", "this NumPy makes no copies for DLPack")
    def test_a_copy_of_dlpack_is_read_and_not_written(self):
        copy = CopyByDLPack(np.arange(4.0))
        np.testing.assert_array_equal(ul.gather(copy, np.zeros(4)), copy.array)
        message = "DLPack gives a copy of the array"
        self.check(ValueError, f"^out: {message}", ul.gather, np.zeros(4), copy)
        self.check(ValueError, f"^target: {message}", ul.copy, np.zeros(4), copy)
        with ul.window(copy) as window:
            self.assertTrue(window.read_only)

    def test_objects_that_lie_about_what_they_are(self):
        class Interface:
            __array_interface__ = {"data": (4096, False), "shape": (3,), "typestr": "<f8", "version": 3}

        self.check(TypeError, "^source: '.*Interface' is no array", ul.gather, Interface())

        class NoCapsule:
            def __init__(self, device, capsule):
                self.device, self.capsule = device, capsule

            def __dlpack_device__(self):
                return self.device

            def __dlpack__(self, **_):
                return self.capsule

        self.check(TypeError, "^source: __dlpack__ gives no capsule", ul.gather, NoCapsule((1, 0), 3))
        self.check(TypeError, "^source: __dlpack_device__ gives no pair", ul.gather, NoCapsule(3, 3))
        self.check(TypeError, "^source: the DLPack device is no", ul.gather, NoCapsule(("a", 0), 3))
        huge = np.lib.stride_tricks.as_strided(np.zeros(1), (2**40, 2**10), (0, 0))
        self.check(ValueError, "^source: the array is longer", ul.gather, huge)


class FirstUse(unittest.TestCase):
    def test_by_several_threads(self):
        """Nothing has imported NumPy before."""
        subprocess.run([sys.executable, "-c", """
import concurrent.futures, threading, ucx_layout
memory = memoryview(bytes(range(64)))[::2]
together = threading.Barrier(4)
def work():
    together.wait(30)
    return bytes(ucx_layout.gather(memory))
with concurrent.futures.ThreadPoolExecutor(4) as threads:
    started = [threads.submit(work) for _ in range(4)]
for each in started:
    assert each.result() == bytes(range(0, 64, 2)), each.result()
"""], timeout=60, check=True)

    def test_the_interpreter_may_end_while_daemon_threads_copy(self):
        subprocess.run([sys.executable, "-c", """
import threading, ucx_layout
memory = memoryview(bytearray(1 << 20))[::2]
copied = [threading.Event() for _ in range(4)]
def work(event):
    out = bytearray(1 << 19)
    while True:
        ucx_layout.gather(memory, out)
        event.set()
for each in copied:
    threading.Thread(target=work, args=(each,), daemon=True).start()
for each in copied:
    each.wait()
"""], timeout=60, check=True)


if __name__ == "__main__":
    unittest.main()
