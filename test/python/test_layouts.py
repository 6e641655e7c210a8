"""Layouts: how they are made, compared, printed and read again."""
import pickle
import subprocess
import sys
import unittest
import xml.etree.ElementTree

import numpy as np
import ucx_layout as ul


class Layouts(unittest.TestCase):
    def test_of_a_column_has_a_block_for_each_row(self):
        column = ul.layout_of(np.zeros((4, 8))[:, 5])
        self.assertEqual(column.blocks(), [(0, 0, 8), (0, 64, 8), (0, 128, 8), (0, 192, 8)])
        self.assertEqual((column.packed_length, column.num_blocks, column.num_sources, column.depth), (32, 4, 1, 1))
        self.assertEqual(column, ul.strided(8, 4, 64))

    def test_of_a_reversed_array_begins_at_its_first_element(self):
        self.assertEqual(ul.layout_of(np.zeros(3, "f4")[::-1]).blocks(), [(0, 0, 4), (0, -4, 4), (0, -8, 4)])

    def test_of_an_array_without_dimensions_is_one_element(self):
        self.assertEqual(ul.layout_of(np.array(7, "i2")).blocks(), [(0, 0, 2)])

    def test_of_an_empty_array_has_no_bytes(self):
        for shape in ((0,), (3, 0), (0, 2**40)):
            with self.subTest(shape=shape):
                self.assertEqual(ul.layout_of(np.lib.stride_tricks.as_strided(np.zeros(1), shape)).packed_length, 0)
        for shape, strides in (((0, 3), (8, 2**62)), ((2, 3, 0), (2**62, 2**62, 2**62))):
            with self.subTest(shape=shape, strides=strides):
                empty = np.lib.stride_tricks.as_strided(np.zeros(1), shape, strides)
                self.assertEqual(ul.layout_of(empty).packed_length, 0)

    def test_of_a_broadcast_array_repeats_its_bytes(self):
        layout = ul.layout_of(np.broadcast_to(np.zeros(2, "u1"), (3, 2)))
        self.assertEqual(layout.packed_length, 6)
        self.assertIs(layout.overlaps, True)

    def test_of_many_dimensions_merges_those_that_are_one(self):
        self.assertEqual(ul.layout_of(np.zeros((2,) * 20, "u1")).num_blocks, 1)
        with self.assertRaisesRegex(ValueError, "^array: more than 16 dimensions"):
            ul.layout_of(np.zeros((2,) * 20, "u1").transpose())

    def test_of_other_objects_with_the_buffer_protocol(self):
        self.assertEqual(ul.layout_of(memoryview(b"abcdef")[::2]).blocks(), [(0, 0, 1), (0, 2, 1), (0, 4, 1)])
        self.assertEqual(ul.layout_of(bytearray(5)).packed_length, 5)

    def test_blocks_take_integers_of_any_width_and_strides(self):
        offsets = [96, 0, 64, 200]
        for dtype in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"):
            fitting = [each if each <= np.iinfo(dtype).max else 120 for each in offsets]
            table = np.full((4, 3), 7, dtype)
            table[:, 1] = fitting
            wanted = ul.concatenate([ul.Part(24, offset) for offset in fitting])
            self.assertEqual(ul.blocks(table[:, 1], 24), wanted, dtype)
        wanted = ul.concatenate([ul.Part(24, offset) for offset in offsets])
        self.assertEqual(ul.blocks(offsets, 24), wanted)
        self.assertEqual(ul.blocks(np.array(offsets).reshape(2, 2).T.copy().T, 24), wanted)

    def test_blocks_compute_offsets_in_64_bits(self):
        table = np.array([0, 3000], np.int32)
        self.assertEqual(ul.blocks(table, 8, unit=2**21).blocks(), [(0, 0, 8), (0, 3000 * 2**21, 8)])

    def test_blocks_have_lengths_of_their_own_or_a_layout(self):
        self.assertEqual(ul.blocks([0, 100], [8, 3]).blocks(), [(0, 0, 8), (0, 100, 3)])
        self.assertEqual(ul.blocks([0, 100], np.array([8, 3])).blocks(), [(0, 0, 8), (0, 100, 3)])
        self.assertEqual(ul.blocks([0, 100], ul.strided(1, 2, 10)).blocks(),
                         [(0, 0, 1), (0, 10, 1), (0, 100, 1), (0, 110, 1)])

    def test_a_long_table_has_all_its_blocks(self):
        offsets = np.random.default_rng(1).permutation(300000)[:100000]
        found = np.array(ul.blocks(offsets, 16, unit=32).blocks())
        np.testing.assert_array_equal(found[:, 1], offsets * 32)

    def test_a_table_is_not_changed_by_the_one_before(self):
        long = np.arange(70000)[::-1] * 8
        ul.blocks(long, 8)
        with self.assertRaises(ValueError):
            ul.blocks(long, [-1])
        self.assertEqual(ul.blocks([24, 0], 8).blocks(), [(0, 24, 8), (0, 0, 8)])
        self.assertEqual(ul.blocks([], 8).packed_length, 0)

    def test_a_table_may_be_made_while_another_one_is_read(self):
        class Number:
            def __index__(self):
                ul.blocks([9, 5, 1], 3)
                return 40

        self.assertEqual(ul.blocks([0, Number()], 8).blocks(), [(0, 0, 8), (0, 40, 8)])

    def test_interleaved_takes_items_in_turn(self):
        layout = ul.interleaved([ul.Item(4, 4, 4, repeat=2), ul.Item(1, 2, 8, source=1, offset=3)])
        self.assertEqual(layout.blocks(), [(0, 0, 8), (1, 3, 1), (0, 8, 8), (1, 11, 1)])
        self.assertEqual(layout.num_sources, 2)

    def test_layouts_nest(self):
        record = ul.concatenate([ul.Part(8, 0), ul.Part(12, 16), ul.Part(8, 32)])
        self.assertEqual(ul.strided(record, 6, 48), ul.parse("strided(6,iov(8@0,12@16,8@32),48)"))
        spread = ul.contiguous(ul.resized(ul.contiguous(4), 0, 10), 3)
        self.assertEqual(spread.blocks(), [(0, 0, 4), (0, 10, 4), (0, 20, 4)])
        self.assertEqual(ul.strided(8, [3, 4], [384, 64]), ul.parse("strided([3,4]x8,[384,64])"))

    def test_text_is_read_again(self):
        for layout in (ul.strided(8, [3, 4], [384, -64]), ul.contiguous(7), ul.blocks([4, 90, 31], 3)):
            self.assertEqual(ul.parse(str(layout)), layout)
        self.assertEqual(repr(ul.contiguous(7)), "<Layout 7: 7 bytes>")
        self.assertIn("strided", ul.strided(8, 3, 64).describe() + str(ul.strided(8, 3, 64)))

    def test_a_notebook_shows_the_picture(self):
        picture = ul.interleaved([ul.Item(4, 4, 4, repeat=2), ul.Item(1, 2, 8, source=1, offset=3)])._repr_html_()
        self.assertEqual(len(xml.etree.ElementTree.fromstring(picture).findall(".//{*}rect[@class='block']")), 2 * 4)
        for layout in (ul.contiguous(0), ul.contiguous(2**40), ul.strided(8, 9, 0), ul.strided(8, 9, -64)):
            xml.etree.ElementTree.fromstring(layout.svg())
        self.assertIn("and 999976 more blocks", ul.strided(1, 10**6, 2).svg())

    def test_bytes_and_pickles_are_read_again(self):
        layout = ul.blocks([4, 90, 31], ul.strided(1, 4, 7))
        self.assertEqual(ul.Layout.from_bytes(layout.to_bytes()), layout)
        self.assertEqual(pickle.loads(pickle.dumps(layout)), layout)

    def test_equal_layouts_are_one_key(self):
        self.assertEqual(len({ul.strided(8, 3, 64), ul.layout_of(np.zeros((3, 8))[:, 1]), ul.contiguous(9)}), 2)
        self.assertFalse(ul.contiguous(9) == "9")


class Package(unittest.TestCase):
    def test_importing_it_loads_nothing_that_it_does_not_need(self):
        program = """if True:
            import sys, ucx_layout
            print([name for name in ("numpy", "asyncio", "mpi4py") if name in sys.modules])
            print("libucp.so" in open("/proc/self/maps").read())
        """
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.stdout, "[]\nFalse\n", done.stderr)

    def test_all_that_it_names_is_there(self):
        for name in ul.__all__:
            self.assertTrue(getattr(ul, name).__doc__, name)


class BadInput(unittest.TestCase):
    def check(self, kind, message, function, *arguments, **keywords):
        with self.assertRaisesRegex(kind, message):
            function(*arguments, **keywords)

    def test_of_layouts_names_the_argument(self):
        self.check(ValueError, "^text: column 11: ", ul.parse, "strided(3,")
        self.check(ValueError, "^length: 2 lengths for 3 offsets", ul.blocks, [1, 2, 3], [1, 2])
        self.check(ValueError, "^length: -1", ul.blocks, [1], -1)
        self.check(ValueError, "^length: -5 at position 1", ul.blocks, [1, 2], [3, -5])
        self.check(TypeError, "^offsets: an array of float64", ul.blocks, np.zeros(3), 8)
        self.check(TypeError, "^offsets: 'str' is no integer|^offsets: 'str' is no array", ul.blocks, "abc", 8)
        self.check(TypeError, "^offsets: 'str' is no integer", ul.blocks, ["a"], 8)
        self.check(ValueError, "^offsets: .* too far", ul.blocks, [2**62], 8, unit=2**20)
        self.check(ValueError, "^blocks: .*max_offset", ul.blocks, [2**50], 8)
        self.check(ValueError, "^offsets: .* too large", ul.blocks, np.array([2**64 - 1], np.uint64), 8)
        self.check(ValueError, "^element: the number has more than 64 bits", ul.contiguous, 2**70)
        self.check(ValueError, "^count: -1", ul.strided, 8, -1, 8)
        self.check(ValueError, "^stride: 1 strides for 2 counts", ul.strided, 8, [1, 2], [8])
        self.check(ValueError, "^contiguous: .*max_length", ul.contiguous, 2**47)
        self.check(ValueError, "^repeat: 0", ul.interleaved, [ul.Item(4, 4, 4, repeat=0)])
        self.check(ValueError, "^source: 65536", ul.concatenate, [ul.Part(4, 0, 65536)])
        self.check(TypeError, "^parts: 'int' in the place of a Part", ul.concatenate, [3])
        self.check(TypeError, "^items: 'tuple' in the place of a Item|^items: ", ul.interleaved, [(1, 2)])
        self.check(TypeError, "^array: 'object' is no array", ul.layout_of, object())
        self.check(TypeError, "^array: the elements are Python objects", ul.layout_of, np.array([object()]))
        self.check(TypeError, "^array: the elements are Python objects", ul.layout_of,
                   np.zeros(2, [("a", "O"), ("b", "M8[s]")]))

    def test_of_bytes_is_refused(self):
        good = ul.blocks([4, 90, 31], 3).to_bytes()
        for cut in range(len(good)):
            self.check(ValueError, "^data: ", ul.Layout.from_bytes, good[:cut])
        for position in range(len(good)):
            bad = bytearray(good)
            bad[position] ^= 0xff
            try:
                ul.Layout.from_bytes(bytes(bad))
            except (ValueError, NotImplementedError, MemoryError):
                pass

    def test_layouts_are_not_made_without_arguments(self):
        with self.assertRaises(TypeError):
            ul.Layout()
        with self.assertRaises(TypeError):
            type("Derived", (ul.Layout,), {})
        with self.assertRaises((TypeError, RuntimeError)):
            str(ul.Layout.__new__(ul.Layout))


if __name__ == "__main__":
    unittest.main()
