"""memory(), share(), window() and mpi_datatype(): what they keep, what they refuse, and what a child has."""
import gc
import importlib.util
import mmap
import os
import subprocess
import sys
import unittest
import warnings
import weakref
from multiprocessing import shared_memory

import numpy as np
import ucx_layout as ul


def in_child(function):
    """Runs a function in a child made by fork() and returns the text that it returns, or the error."""
    read, write = os.pipe()
    with warnings.catch_warnings():  # some releases of UCX have a thread, of which Python warns
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            text = function()
        except BaseException as error:  # noqa: what else the child does is of no interest
            text = f"{type(error).__name__}: {error}"
        os.write(write, str(text).encode())
        gc.collect()
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as file:
        text = file.read()
    status = os.waitpid(child, 0)[1]
    return text if status == 0 else f"status {status}, {text}"


def private_array(count):
    """Numbers in whole pages of their own, so that no neighbour moves with them."""
    return np.frombuffer(mmap.mmap(-1, count * 8, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), np.int64)


class Memory(unittest.TestCase):
    def test_arrays_keep_the_memory(self):
        memory = ul.memory(10000)
        self.assertEqual((memory.length, memory.closed), (10000, False))
        array = memory.array((100, 10), "f8")
        self.assertFalse(array.any())
        with self.assertRaisesRegex(BufferError, "1 arrays or memoryviews"):
            memory.close()
        column = array[:, 3]
        del array, memory
        gc.collect()
        column[:] = 7
        self.assertEqual(column.sum(), 700)

    def test_is_closed_at_the_end_of_its_block(self):
        with ul.memory(1) as memory:
            self.assertEqual(bytes(memoryview(memory)), b"\0")
        self.assertTrue(memory.closed)
        memory.close()
        with self.assertRaisesRegex(BufferError, "closed"):
            memoryview(memory)
        with self.assertRaisesRegex(ValueError, "closed"):
            memory.array(1)

    def test_wrong_lengths(self):
        for length, kind in ((0, ValueError), (-1, ValueError), (2**70, ValueError), ("a", TypeError), (1.5, TypeError),
                             (2**60, (ValueError, MemoryError))):
            with self.assertRaises(kind, msg=str(length)):
                ul.memory(length)
        with self.assertRaises(TypeError):
            ul.memory(100).array(101)

    def test_shared_arrays_keep_their_bytes_and_addresses(self):
        self.check_shared(private_array(1 << 18))

    @unittest.skipIf("asan" in os.environ.get("LD_PRELOAD", ""), "the memory before an array moves, too")
    def test_shared_arrays_may_be_on_the_heap(self):
        self.check_shared(np.zeros(1 << 18, np.int64))

    def check_shared(self, array):
        array[:] = np.arange(1 << 18)
        address = array.ctypes.data
        with ul.share(array) as memory:
            self.assertEqual((memory.address, memory.length), (address, array.nbytes))
            self.assertTrue((array == np.arange(1 << 18)).all())
            array[::2] = 5
            with self.assertRaisesRegex(BufferError, "use the array"):
                memoryview(memory)
        self.assertTrue((array[::2] == 5).all() and (array[1::2] == np.arange(1, 1 << 18, 2)).all())

    def test_share_keeps_its_array(self):
        array = private_array(1 << 18)
        before = sys.getrefcount(array)
        memory = ul.share(array)
        self.assertGreater(sys.getrefcount(array), before)
        memory.close()
        self.assertEqual(sys.getrefcount(array), before)

    def test_shared_arrays_have_no_other_array(self):
        with ul.share(private_array(1 << 18)) as memory, self.assertRaisesRegex(ValueError, "use the array"):
            memory.array(8)

    def test_share_that_is_dropped_ends_before_its_array(self):
        def mappings():
            with open("/proc/self/maps", encoding="utf-8") as maps:
                return sum("rw-s" in line for line in maps)

        before = mappings()
        for _ in range(5):
            array = private_array(1 << 20)
            memory = ul.share(array)
            del array, memory
        self.assertEqual(mappings(), before)

    def test_share_of_a_shared_mapping(self):
        segment = shared_memory.SharedMemory(create=True, size=1 << 16)
        try:
            array = np.frombuffer(segment.buf, np.uint8)
            with ul.share(array) as memory:
                array[:] = 3
                self.assertEqual(memory.length, len(array))
            self.assertEqual(int(array.sum()), 3 << 16)
            del array
        finally:
            segment.close()
            segment.unlink()

    def test_share_refuses_what_it_cannot_share(self):
        with self.assertRaisesRegex(ValueError, "^array: the array is read-only"):
            ul.share(b"abc")
        with self.assertRaisesRegex(ValueError, "^array: it has no bytes"):
            ul.share(np.zeros(0))
        array = private_array(1 << 18)
        with ul.share(array), self.assertRaisesRegex(ValueError, "^array: .*shared"):
            ul.share(array)

    def test_a_child_has_the_same_memory(self):
        memory = ul.memory(4096)
        array = memory.array(8, "u1")

        def write():
            array[3] = 9
            return array[3]

        self.assertEqual(in_child(write), "9")
        self.assertEqual(array[3], 9)


class Windows(unittest.TestCase):
    def test_has_an_address_and_a_length_until_it_is_closed(self):
        with ul.window(np.zeros((100, 8))[:, 5]) as window:
            self.assertEqual(window.length, 800)
            for interface in (window.__array_interface__, window.__cuda_array_interface__):
                self.assertEqual(interface["data"], (window.address, False))
                self.assertEqual((interface["shape"], interface["typestr"]), ((800,), "|u1"))
            self.assertEqual(window.layout, ul.strided(8, 100, 64))
            self.assertFalse(window.read_only)
        window.close()
        for read in (lambda: window.address, lambda: window.length, lambda: window.layout, lambda: window.read_only,
                     lambda: window.__array_interface__, lambda: window.__cuda_array_interface__,
                     lambda: window.__enter__() and window.carrier):
            with self.assertRaisesRegex(ValueError, "^Window: it is closed"):
                read()

    def test_contexts_that_others_make_after_attach_have_windows(self):
        program = """
import ctypes, sys, ucx_layout
ucp = ctypes.CDLL(ucx_layout.attach())
parameters = (ctypes.c_uint64 * 64)(1, 1)  # of ucp_params_t: features, tag matching
configuration, context = ctypes.c_void_p(), ctypes.c_void_p()
assert ucp.ucp_config_read(None, None, ctypes.byref(configuration)) == 0
assert ucp.ucp_init_version(1, 17, parameters, configuration, ctypes.byref(context)) == 0
ucp.ucp_context_print_info(context, ctypes.c_void_p.in_dll(ctypes.CDLL(None), "stdout"))
"""
        printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        self.assertEqual((printed.returncode, printed.stderr), (0, ""))
        self.assertRegex(printed.stdout, "lay_copy/layout")

    def test_nobody_reads_it_by_mistake(self):
        with ul.window(np.zeros((10, 8))[:, 5]) as window:
            for read in (np.asarray, np.array, memoryview, bytes, bytearray, list, np.frombuffer, ul.gather, len, sum,
                         ul.layout_of, lambda value: ul.scatter(b"", value), lambda value: np.zeros(1) + value):
                with self.assertRaises(TypeError, msg=str(read)):
                    read(window)

            class Pretender:
                """A buffer at the window's address, as mpi4py's MPI.memory.fromaddress() makes one."""

                __array_interface__ = dict(window.__array_interface__)

            with self.assertRaisesRegex(ValueError, "^source: .* address of a window"):
                ul.gather(np.asarray(Pretender()))

    def test_keeps_its_arrays_and_lets_them_go(self):
        data, array = bytearray(100), np.zeros((4, 8))
        references = sys.getrefcount(array)
        window = ul.window(memoryview(data)[::3])
        other = ul.window(array[:, 1])
        with self.assertRaises(BufferError):
            data.append(1)
        window.close()
        data.append(1)
        other.close()
        self.assertEqual(sys.getrefcount(array), references)
        ul.window(array[:, 1])  # dropped without close()
        gc.collect()
        self.assertEqual(sys.getrefcount(array), references)

    def test_in_a_cycle_is_collected(self):
        class Array(np.ndarray):
            pass

        for make in (ul.window, ul.share):
            array = private_array(1 << 16).view(Array)
            array.keeps = make(array)
            gone = weakref.ref(array)
            del array
            gc.collect()
            self.assertIsNone(gone(), make)

    def test_of_a_block_table(self):
        cache = np.zeros((100, 64), np.uint8)
        with ul.window(cache, layout=ul.blocks([7, 2], 64, unit=64)) as window:
            self.assertEqual(window.length, 128)
        with self.assertRaisesRegex(IndexError, "^array: the layout reaches"):
            ul.window(cache, layout=ul.blocks([100], 64, unit=64))

    def test_tells_what_cannot_be_received_into(self):
        fixed = np.zeros((4, 8))
        fixed.flags.writeable = False
        for array in (fixed[:, 1], np.broadcast_to(np.zeros(3), (2, 3))):
            with ul.window(array) as window:
                self.assertTrue(window.read_only)

    def test_of_a_parent_is_refused_in_a_child(self):
        with ul.window(np.zeros((10, 8))[:, 5]) as window:
            self.assertIn("RuntimeError: Window: it was made before fork()", in_child(lambda: window.address))
            self.assertEqual(in_child(window.close), "None")
            self.assertEqual(window.length, 80)


@unittest.skipUnless(importlib.util.find_spec("mpi4py"), "no mpi4py")
class Datatypes(unittest.TestCase):
    def test_pack_what_the_layout_gathers(self):
        # In a process of its own: it starts MPI.
        program = """if True:
            import numpy as np, ucx_layout as ul
            from mpi4py import MPI
            data = np.random.default_rng(1).integers(0, 256, 4096, np.uint8)
            table = np.random.default_rng(2).permutation(60)[:40]
            for layout in (ul.strided(8, 30, 64), ul.strided(8, [3, 4, 5], [1000, 200, 24]), ul.contiguous(0),
                           ul.blocks(table, 64, unit=64), ul.blocks([9, 200, 77], [3, 8, 1]), ul.contiguous(100)):
                datatype = ul.mpi_datatype(layout)
                packed = np.zeros(layout.packed_length, np.uint8)
                MPI.COMM_SELF.Sendrecv([data, 1, datatype], 0, 0, [packed, MPI.BYTE], 0, 0)
                assert packed.tobytes() == ul.gather(data, layout=layout).tobytes(), layout
                datatype.Free()
            try:
                ul.mpi_datatype(ul.interleaved([ul.Item(1, 1, 1), ul.Item(1, 1, 1, source=1)]))
            except ValueError as error:
                print(error)
        """
        env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=60)
        self.assertEqual((done.stdout, done.returncode), ("layout: 2 sources, a datatype of MPI has one\n", 0),
                         done.stderr)


if __name__ == "__main__":
    unittest.main()
