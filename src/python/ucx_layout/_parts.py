"""What layouts of several parts are made of."""
from typing import NamedTuple

from ._core import Layout
from ._types import Integers


class Part(NamedTuple):
    """One part for concatenate()."""

    element: "int | Layout"
    """Bytes, or a layout."""
    offset: int
    """Bytes from the first element of the source."""
    source: int = 0
    """Which array, by its place in the list of arrays."""


class Item(NamedTuple):
    """One item for interleaved(): elements of one source, the last dimension fastest."""

    element: "int | Layout"
    """Bytes, or a layout."""
    count: "Integers"
    """Number of elements, in each dimension, the outermost one first."""
    stride: "Integers"
    """Bytes from one element to the next, in each dimension."""
    source: int = 0
    """Which array, by its place in the list of arrays."""
    offset: int = 0
    """Bytes from the first element of the source to the first element of the item."""
    repeat: int = 1
    """Elements that each cycle takes, at least 1."""
