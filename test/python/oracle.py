"""What gather() and its kin should do, computed byte by byte and slowly, and random arrays of any shape and strides."""
import itertools
import os
import random

import numpy as np

SEED = int(os.environ.get("UCXL_TEST_SEED", "1"))


def random_numbers(name):
    """Differ by test and by day; the seed is printed by the check."""
    return random.Random(f"{SEED} {name}")


def packed_bytes(view):
    """The bytes of the elements in C order, read one element at a time."""
    return b"".join(view[(*index, ...)].tobytes() for index in itertools.product(*(range(n) for n in view.shape)))


def memory_of(view):
    """The array that a view was made of."""
    while isinstance(view.base, np.ndarray):
        view = view.base
    return view


def written_bytes(whole, view, packed):
    """The bytes of `whole`, a contiguous array, after `packed` was written into a view of it, element by element."""
    written, size = bytearray(whole.tobytes()), view.itemsize
    first = view.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    for number, index in enumerate(itertools.product(*(range(n) for n in view.shape))):
        at = first + sum(i * stride for i, stride in zip(index, view.strides))
        written[at:at + size] = packed[number * size:(number + 1) * size]
    return bytes(written)


def random_view(numbers, dtype=None, writable=True):
    """A view into an array of random bytes: sliced, reversed, transposed; sometimes of no dimension or no element."""
    dtype = np.dtype(dtype or numbers.choice(["u1", "i2", "f4", "f8", "c16", "S3", "M8[ns]", "V7", ">i4"]))
    shape = [numbers.randint(1, 7) for _ in range(numbers.randint(0, 4))]
    whole = np.frombuffer(numbers.randbytes(int(np.prod(shape)) * dtype.itemsize), dtype).reshape(shape)
    whole = whole.copy() if writable else whole
    view = whole[tuple(random_slice(numbers, n) for n in shape)] if shape else whole
    return view.transpose(numbers.sample(range(view.ndim), view.ndim))


def random_slice(numbers, length):
    return slice(numbers.choice([None, numbers.randrange(length)]), None, numbers.choice([1, 1, 2, 3, -1, -2]))
