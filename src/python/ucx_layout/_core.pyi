

from collections.abc import Iterable, Sequence
from typing import Any

from ._parts import Item, Part
from ._types import Array, IntegerArray, Integers

class Layout:
    """
    Where bytes are, without addresses: blocks in a fixed order, the packed order.

    Immutable; any thread may use it. Made by layout_of(), strided(), blocks(), interleaved(), concatenate(), contiguous(),
    resized() and parse(). Layouts of equal content are equal, have the same hash in a process, and share their compiled
    plan. All lengths, offsets and strides are bytes. Can be pickled.
    """

    def __str__(self) -> str: ...

    def __repr__(self) -> str: ...

    def __eq__(self, other: object, /) -> bool: ...

    def __hash__(self) -> int: ...

    def __getstate__(self) -> bytes: ...

    def __setstate__(self, arg: bytes, /) -> None: ...

    def to_bytes(self) -> bytes:
        """
        The layout as bytes, to store or to send. Later releases read them, too.
        """

    @staticmethod
    def from_bytes(data: bytes) -> Layout:
        """
        Reads what to_bytes() wrote. Any bytes are safe: others raise ValueError.
        """

    def describe(self) -> str:
        """The normal form and the copy kernels, as text for people."""

    def blocks(self, limit: int | None = None) -> list[tuple[int, int, int]]:
        """
        The first `limit` contiguous blocks in packed order: (source, offset, length). Default: all of them.
        """

    @property
    def packed_length(self) -> int:
        """Bytes described: of the gathered array, and of a window."""

    @property
    def num_sources(self) -> int:
        """Number of arrays that it describes bytes of, at least 1."""

    @property
    def extent(self) -> int:
        """Bytes between the bounds, the largest one of all sources."""

    @property
    def num_blocks(self) -> int:
        """Contiguous blocks; neighbours that touch count as one."""

    @property
    def depth(self) -> int:
        """Loops nested in the normal form."""

    @property
    def bounds(self) -> list[tuple[int, int]]:
        """
        For each source the first byte and the one behind the last byte, from its first element.
        """

    @property
    def overlaps(self) -> bool | None:
        """
        Whether some byte is described more than once; None if finding out would take too long. Such a layout can be read and sent, but nothing is written or received through it.
        """

def blocks(offsets: IntegerArray, length: Integers | Layout, *, unit: int = 1) -> Layout:
    """
    Blocks at any offsets, in the order of `offsets`: a block table.

    `offsets` is an array of integers of any width, or a list; an array of several dimensions is read in C order. Block i
    begins at byte offsets[i] * `unit`, computed in 64 bits: a table of block numbers is blocks(table, n, unit=n).
    `length` is the bytes of each block, an array with the length of each one, or a Layout that is the element.

    Raises ValueError for offsets beyond 2^46 bytes. Whether blocks are inside of an array shows when the layout is
    used.
    """

def concatenate(parts: Iterable[Part]) -> Layout:
    """Parts at any offsets of any sources, in sequence. See Part."""

def contiguous(element: int | Layout, count: int = 1) -> Layout:
    """
    `count` elements in sequence, each at the extent of the one before.

    An element is a number of bytes, or a Layout. Raises ValueError if a limit is exceeded (2^46 bytes).
    """

def copy(source: Array | Sequence[Array], target: Array | Sequence[Array], *, source_layout: Layout | None = None, target_layout: Layout | None = None) -> None:
    """
    Copies the elements of one array into those of another one, both of any strides, in one pass.

    Both are read and written in C order; they need the same number of bytes, and not the same shape. For the rest see
    gather() and scatter().
    """

def gather(source: Array | Sequence[Array], out: Array | None = None, *, layout: Layout | None = None) -> Any:
    """
    Copies the elements of an array of any strides into a contiguous one, and returns that.

    `out` has to be contiguous, writable, of the same number of bytes and of the same type of elements, or of bytes; its
    shape does not matter. Default: a new array of NumPy with the shape of `source`, or a tensor if `source` is one of
    torch.

    With `layout` it gathers what the layout describes, from the first element of `source` on; a layout of several sources
    takes a list of arrays. Every byte has to be inside of its array, otherwise it raises IndexError. The new array is then
    flat.

    Source and `out` may overlap; the result is as if all had been read first. Long copies release the GIL, and any number
    of threads may copy. Nobody else may write the memory meanwhile. The plan is kept for the next array of the same shape
    and strides.

    Raises TypeError (not arrays, other elements), ValueError (sizes, read-only), BufferError (memory of a GPU).
    """

def interleaved(items: Iterable[Item]) -> Layout:
    """
    Records out of arrays: cycles that take the next `repeat` elements of each item in turn. See Item.

    Cycles skip an item that has run out.
    """

def layout_of(array: Array) -> Layout:
    """
    The elements of an array in C order, seen from its first element.

    Any strides are taken: those of slices, transposed and reversed arrays, 0 of broadcast ones, and arrays without
    dimensions. The layout has no address, so it fits every array of the same shape and strides, and does not keep this one.

    Raises TypeError if the argument is no array or its elements are Python objects, BufferError if it is in memory that the
    CPU cannot read (a GPU), ValueError if more than 16 dimensions are left after merging those that are one.
    """

def parse(text: str) -> Layout:
    """
    A layout from text: parse("strided(4096,64,128)"). ucx_layout_info(1) has the grammar.

    Raises ValueError, which names the column.
    """

def resized(layout: Layout, lb: int, extent: int) -> Layout:
    """
    The layout with other bounds, in bytes: elements in sequence are `extent` bytes apart.
    """

def scatter(packed: Array, target: Array | Sequence[Array], *, layout: Layout | None = None) -> None:
    """
    Copies a contiguous array into the elements of an array of any strides: the reverse of gather().

    Raises ValueError also if some byte of `target` would be written more than once. For the rest see gather().
    """

def strided(element: int | Layout, count: Integers, stride: Integers) -> Layout:
    """
    An element repeated in one or several dimensions.

    `element` is a number of bytes, or a Layout. `count` is the number of elements and `stride` the bytes from one to the
    next, which may be negative or 0; for several dimensions both are sequences of the same length, the outermost
    dimension first: strided(8, [3, 4], [384, 64]).
    """
