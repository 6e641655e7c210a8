"""Datatypes of MPI from layouts, for mpi4py."""
from typing import TYPE_CHECKING, Any

from ._core import Layout

if TYPE_CHECKING:
    from mpi4py import MPI


def _period(offsets: "list[int]") -> int:
    """How many offsets from the first one on have one distance."""
    stride, count = offsets[1] - offsets[0], 2
    while count < len(offsets) and offsets[count] - offsets[count - 1] == stride:
        count += 1
    return count


def _of_equal_blocks(element: "MPI.Datatype", length: int, offsets: "list[int]") -> "MPI.Datatype":
    """Nested vectors if the offsets are those of a strided layout, else a list."""
    if len(offsets) == 1:
        return element.Create_hindexed([1], offsets)
    inner = _period(offsets)
    stride, rows = offsets[1] - offsets[0], offsets[::inner]
    if len(offsets) % inner == 0 and len(rows) <= len(offsets) // 2 and all(
            offsets[i] == rows[i // inner] + i % inner * stride for i in range(len(offsets))):
        vector = element.Create_hvector(inner, 1, stride)
        try:
            return _of_equal_blocks(vector, length, rows)
        finally:
            vector.Free()
    return element.Create_hindexed_block(1, offsets)


def mpi_datatype(layout: Layout) -> "MPI.Datatype":
    """A committed datatype of MPI with the blocks of a layout, in its order, for mpi4py: comm.Send([a, 1, datatype]).

    Offsets count from the start of the buffer that MPI gets, which has to begin with the first element of the array.
    Strided layouts become nested vectors, others a list of blocks. The caller owns it and calls its Free(). Raises
    ValueError for layouts of several sources, ImportError without mpi4py.
    """
    from mpi4py import MPI

    if layout.num_sources != 1:
        raise ValueError(f"layout: {layout.num_sources} sources, a datatype of MPI has one")
    blocks: "list[tuple[int, int, int]]" = layout.blocks()
    lengths = {length for _, _, length in blocks}
    made: Any
    if len(lengths) == 1:
        element = MPI.BYTE.Create_contiguous(lengths.pop())
        made = _of_equal_blocks(element, blocks[0][2], [offset for _, offset, _ in blocks])
        element.Free()
    else:
        made = MPI.BYTE.Create_hindexed([length for _, _, length in blocks], [offset for _, offset, _ in blocks])
    return made.Commit()
