"""Arrays that frameworks take without a copy, and rows of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tfrfast import _native

__all__ = [
    "Array",
    "aligned",
    "aligned_zeros",
    "as_bytes",
    "check_padded",
    "splits_of",
    "take_rows",
]

Array = npt.NDArray[Any]

_ALIGNMENT = 64


def aligned_zeros(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Returns zeros, aligned so that TensorFlow and other consumers need no copy."""
    size = math.prod(shape) * dtype.itemsize
    space = np.zeros(size + _ALIGNMENT, np.uint8)
    start = -space.ctypes.data % _ALIGNMENT
    return space[start : start + size].view(dtype).reshape(shape)


def check_padded(shape: Sequence[int], value_bytes: int) -> None:
    """Raises MemoryError if padding to this shape takes too much memory. Call it before an
    allocation: a single long row decides the size.
    """
    limit = _native.max_padded_bytes()
    if math.prod(map(int, shape)) * max(value_bytes, 1) > limit:
        raise MemoryError(
            f"Padded to its longest row, the column has the shape {(*map(int, shape),)}, which "
            f"takes more than a quarter of the memory ({limit} bytes). Give a "
            "shorter length, leave the rows as they are, or use smaller batches."
        )


def aligned(values: Array) -> Array:
    """Returns a copy, aligned so that TensorFlow and other consumers need no further copy."""
    copy = aligned_zeros(values.shape, values.dtype)
    copy[...] = values
    return copy


def splits_of(lengths: Array) -> Array:
    """Returns the start of each row, and the end of the last row."""
    splits = aligned_zeros((len(lengths) + 1,), np.dtype(np.int64))
    np.cumsum(lengths, out=splits[1:])
    return splits


def as_bytes(values: Array) -> tuple[npt.NDArray[np.uint8], int]:
    """Returns the memory of an array without Python objects, and the bytes of a row."""
    row_bytes = math.prod(values.shape[1:]) * values.itemsize
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8), row_bytes


def take_rows(values: Array, starts: Array, counts: Array) -> Array:
    """Returns rows `starts[i]` to `starts[i] + counts[i]` for each i, one after the other."""
    if values.dtype.hasobject:
        before = splits_of(counts)
        shift = np.repeat(starts - before[:-1], counts)
        taken: Array = values[shift + np.arange(int(before[-1]))]
        return taken
    memory, row_bytes = as_bytes(values)
    joined = _native.join_pieces(memory, starts * row_bytes, counts * row_bytes)
    return joined.view(values.dtype).reshape(int(counts.sum()), *values.shape[1:])
