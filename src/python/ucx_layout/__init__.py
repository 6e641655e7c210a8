"""Memory that is not contiguous, as one buffer: slices of arrays, block tables, records out of arrays.

A layout says where bytes are, without addresses; layout_of(a[:, 5]), strided(), blocks() and others make one.
gather(), scatter() and copy() move what it describes, without the GIL. All take arrays of NumPy, and of anything else
that has the buffer protocol or DLPack, in memory that the CPU can read.

    import numpy as np, ucx_layout as ul

    a = np.arange(12.0).reshape(3, 4)
    ul.gather(a[:, 1])                                      # array([1., 5., 9.])
    cache = np.zeros((1000, 4096), np.uint8)
    table = ul.blocks(np.array([7, 2, 9], np.int32), 4096, unit=4096)
    ul.scatter(np.ones(3 * 4096, np.uint8), cache, layout=table)

memory(), share() and window() are for UCX: a window is an array of any strides as one buffer. listen() and connect()
exchange arrays with another process; mpi_datatype() is for mpi4py.

All lengths, offsets and strides are bytes, and packed bytes are in the order of the layout.
"""
from ._connection import Connection, Request, connect, listen
from ._core import (Exposed, Layout, Memory, Remote, Window, __version__, attach, blocks, concatenate, contiguous, copy,
                    gather, interleaved, layout_of, memory, parse, resized, scatter, share, strided, window)
from ._mpi import mpi_datatype
from ._parts import Item, Part

__all__ = ["Connection", "Exposed", "Item", "Layout", "Memory", "Part", "Remote", "Request", "Window", "__version__",
           "attach", "blocks", "concatenate", "connect", "contiguous", "copy", "gather", "interleaved", "layout_of",
           "listen", "memory", "mpi_datatype", "parse", "resized", "scatter", "share", "strided", "window"]
