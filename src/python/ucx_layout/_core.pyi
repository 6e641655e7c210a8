

from collections.abc import Iterable, Sequence
from typing import Any

from ._parts import Item, Part
from ._types import Array, IntegerArray, Integers

class Exposed:
    """
    An array that the peer may read and write, until it is closed. Keeps the array.
    """

    @property
    def key(self) -> bytes:
        """What the peer needs for Connection.remote()."""

    @property
    def length(self) -> int:
        """Packed bytes."""

    def close(self) -> None:
        """No operation of the peer may be running."""

    def __enter__(self) -> Exposed: ...

    def __exit__(self, *exception: object) -> None: ...

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

    def svg(self) -> str:
        """
        A picture as SVG: memory above, a row for each source; the window below. Shows the first 24 blocks, and says so.
        """

class Memory:
    """
    Memory that processes of this host reach in one pass. Made by memory() and share().

    A context manager that closes it. What memory() made has the buffer protocol: arrays over it keep it, and it cannot be
    closed before they end. After fork() the child has the same memory.
    """

    def __buffer__(self, flags, /):
        """
        Return a buffer object that exposes the underlying memory of the object.
        """

    def __release_buffer__(self, buffer, /):
        """
        Release the buffer object that exposes the underlying memory of the object.
        """

    @property
    def address(self) -> int: ...

    @property
    def length(self) -> int:
        """Bytes."""

    @property
    def closed(self) -> bool: ...

    def array(self, shape: Integers, dtype: Any = 'u1') -> Any:
        """
        A new array of NumPy at the start of this memory, which memory() made. Raises TypeError if it does not fit, ValueError if the memory is that of an array.
        """

    def close(self) -> None:
        """
        Releases the memory; private memory is private again. Windows over it lose their remote keys. Raises BufferError while arrays over it exist. Closing twice is allowed.
        """

    def __enter__(self) -> Memory: ...

    def __exit__(self, *exception: object) -> None: ...

class Operation:
    """What one call of a Worker began."""

    @property
    def done(self) -> bool: ...

    def result(self) -> int:
        """Bytes moved; raises the error of the operation."""

class Remote:
    """An array of the peer, for put() and get()."""

    @property
    def length(self) -> int:
        """Packed bytes."""

    def close(self) -> None: ...

    def put(self, array: object, layout: Layout | None = None) -> Operation: ...

    def get(self, array: object, layout: Layout | None = None) -> Operation: ...

class Window:
    """
    Arrays of any strides as one buffer of UCX. Made by window(); a context manager that closes it.

    It has an address and a length, which calls of UCX take as those of any buffer. Nobody else can use them: the CPU cannot
    read the address, so a Window has no buffer protocol, and NumPy refuses it. For libraries over UCX that read
    __cuda_array_interface__ (ucxx) or __array_interface__ it is an array of bytes. It keeps its arrays until it is
    closed.
    """

    @property
    def address(self) -> int:
        """For calls of UCX. Raises ValueError if the window is closed."""

    @property
    def length(self) -> int:
        """Packed bytes."""

    @property
    def nbytes(self) -> int:
        """The same as length."""

    @property
    def layout(self) -> Layout: ...

    @property
    def closed(self) -> bool: ...

    @property
    def read_only(self) -> bool:
        """
        Whether nothing may be received into it: an array is read-only, or bytes are shown twice.
        """

    @property
    def carrier(self) -> str:
        """
        Who moves the bytes to other hosts: 'keys', 'copies', 'direct', or 'undecided' before the first use.
        """

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """For libraries over UCX, which pass on the address and do not read it."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """
        The same for ucxx, which asks for nothing else that the CPU need not read. No GPU can read it.
        """

    @property
    def __array_struct__(self) -> Any:
        """Always raises TypeError, so that NumPy does not read the window."""

    def close(self) -> None:
        """
        Ends the window and lets its arrays go. Nothing may be using it. Closing twice is allowed.
        """

    def __enter__(self) -> Window: ...

    def __exit__(self, *exception: object) -> None: ...

class Worker:
    """A context and a worker of UCX with one peer; see Connection."""

    def __init__(self, socket: int = -1) -> None: ...

    def address(self) -> bytes: ...

    def connect(self, address: bytes) -> None: ...

    def send(self, array: object, layout: Layout | None, tag: int, synchronous: bool = False) -> Operation: ...

    def recv(self, array: object, layout: Layout | None, tag: int) -> Operation: ...

    def flush(self) -> Operation: ...

    def disconnect(self) -> Operation: ...

    def expose(self, array: object, layout: Layout | None = None) -> Exposed: ...

    def remote(self, key: bytes) -> Remote: ...

    def progress(self) -> bool: ...

    def wait(self, operation: Operation | None, seconds: float, socket: int) -> None: ...

    @property
    def open(self) -> bool: ...

    def leave(self) -> None: ...

    def close(self) -> None: ...

def attach() -> str:
    """
    Loads UCX if no package has done so, and returns the file of its libucp.

    Contexts of UCX that are made after `import ucx_layout` and this call have windows.
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

def memory(length: int, *, huge_pages: bool | None = None) -> Memory:
    """
    Zeroed memory of `length` bytes, at a page boundary, that other processes of this host can map.

    Windows over it, of any layout, are reached by peers in one pass. `huge_pages`: None takes them where the kernel has
    them, True needs them. Raises MemoryError; RuntimeError if there is no UCX.
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

def share(array: Array) -> Memory:
    """
    Shares the memory of an array: what memory() does, for memory that exists already.

    A shared mapping (multiprocessing.shared_memory, mmap of a file in memory) is shared as it is. Private memory moves into
    a file at the same address, whole pages at a time, and is private again after close(); the array stays valid. Meanwhile
    other threads must not write it, or its neighbours on its first and last page: do it at the start, for large arrays. The
    Memory keeps the array. Raises ValueError with the reason if the memory cannot move, or is read-only.
    """

def strided(element: int | Layout, count: Integers, stride: Integers) -> Layout:
    """
    An element repeated in one or several dimensions.

    `element` is a number of bytes, or a Layout. `count` is the number of elements and `stride` the bytes from one to the
    next, which may be negative or 0; for several dimensions both are sequences of the same length, the outermost
    dimension first: strided(8, [3, 4], [384, 64]).
    """

def window(array: Array | Sequence[Array], *, layout: Layout | None = None) -> Window:
    """
    A window over the elements of an array, or over what a layout describes of it.

    Arguments as for gather(). Works in every context of the process's UCX, if that was loaded before the context was made;
    attach() loads it. Raises RuntimeError if there is no UCX.
    """
