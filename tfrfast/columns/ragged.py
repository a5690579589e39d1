"""Rows of any length."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from tfrfast import _native
from tfrfast.base.arguments import no_such
from tfrfast.base.refused_arguments import explains_arguments
from tfrfast.columns.arrays import (
    Array,
    aligned,
    aligned_zeros,
    as_bytes,
    check_padded,
    splits_of,
    take_rows,
)
from tfrfast.columns.arrow import ArrowExport, arrow_of
from tfrfast.columns.rows import Rows, is_number, row_numbers
from tfrfast.columns.strings import Bytes

__all__ = ["Ragged", "Values", "take_values"]


class Ragged(ArrowExport):
    """Rows of any length: row `i` is `values[row_splits[i]:row_splits[i + 1]]`.

    `values` is an array, `Bytes`, or `Ragged` if rows hold rows.

    >>> column = tfr.Ragged(np.array([5, 6, 7]), np.array([0, 2, 2, 3]))
    >>> column[0], column.tolist()
    (array([5, 6]), [[5, 6], [], [7]])
    """

    __slots__ = ("row_splits", "values")

    @explains_arguments
    def __init__(self, values: Array | Bytes | Ragged, row_splits: Array) -> None:
        self.values = values
        self.row_splits = row_splits

    def __len__(self) -> int:
        return len(self.row_splits) - 1

    @overload
    def __getitem__(self, index: Rows) -> Ragged: ...
    @overload
    def __getitem__(self, index: Any) -> Any: ...
    def __getitem__(self, index: Any) -> Any:
        """Returns the values of a row. A slice, a mask or a list of row numbers gives a Ragged.

        `ragged[i, j]` is `ragged[i][j]`. One row and a slice without a step are views. Any other
        index copies.
        """
        if type(index) is int or is_number(index):
            number = operator.index(index)
            if not -len(self) <= number < len(self):
                raise no_such("Row", number, len(self))
            number %= len(self)
            return self.values[int(self.row_splits[number]) : int(self.row_splits[number + 1])]
        if isinstance(index, slice) and index.step in (None, 1):
            start, stop, _ = index.indices(len(self))
            splits = self.row_splits[start : max(start, stop) + 1]
            return Ragged(self.values[int(splits[0]) : int(splits[-1])], splits - splits[0])
        if isinstance(index, tuple):
            return self._further(index)
        return self._take_rows(row_numbers(index, len(self)), 1)

    def _further(self, index: tuple[Any, ...]) -> Any:
        """Returns the item at `index[1:]` of row `index[0]`."""
        if len(index) > 1 and not is_number(index[0]):
            raise IndexError("Only one row can be indexed further: rows differ in length.")
        taken: Any = self[index[0]] if index else self
        return taken[index[1:]] if len(index) > 1 else taken

    def _take_rows(self, firsts: Array, counts: Any) -> Ragged:
        """Returns a copy of rows `firsts[i]` to `firsts[i] + counts[i]` for each i, one after the
        other.
        """
        splits = self._wide_splits()
        starts = splits[firsts]
        values = take_values(self.values, starts, splits[firsts + counts] - starts)
        lengths = take_rows(np.diff(splits), firsts, np.broadcast_to(counts, firsts.shape))
        taken = splits_of(lengths)
        narrow = self.row_splits.dtype
        return Ragged(values, taken if taken.dtype == narrow else aligned(taken.astype(narrow)))

    def _wide_splits(self) -> Array:
        """Returns the splits as int64, because byte counts need 64 bits."""
        return np.asarray(self.row_splits).astype(np.int64, copy=False)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    @property
    def row_lengths(self) -> Array:
        """Returns the number of values of each row."""
        return np.diff(self.row_splits)

    @explains_arguments
    def to_padded(
        self, length: int | Sequence[int | None] | None = None, pad: Any = 0
    ) -> Array | Bytes:
        """Returns rows of equal length: an array `(rows, length, ...)`, or `Bytes` of that shape.

        Shorter rows are filled up with `pad`, by default b"" for byte strings. Longer rows lose
        their end. Without `length`, all rows get the length of the longest. Rows that hold rows are
        padded, too. `length` may then be a sequence with a number or None for each level; a single
        number is for the outer level.
        """
        lengths = list(length) if isinstance(length, Sequence) else [length]
        values = self.values
        if isinstance(values, Ragged):
            values = values.to_padded(lengths[1:] or None, pad)
        elif len(lengths) > 1:
            raise ValueError(f"length={length!r} has more numbers than there are levels of rows.")
        splits = self._wide_splits()
        counts = np.diff(splits)
        if not lengths or lengths[0] is None:
            width = int(counts.max(initial=0))
        elif (width := operator.index(lengths[0])) < 0:
            raise ValueError(f"length must be 0 or more, not {width}.")
        kept = np.minimum(counts, width)
        if isinstance(values, Bytes):
            return _padded_strings(values, splits[:-1], kept, width, pad)
        return _padded_numbers(np.asarray(values), splits[:-1], kept, width, pad)

    def tolist(self) -> list[Any]:
        """Returns nested lists."""
        values = self.values.tolist()
        splits = self.row_splits.tolist()
        return [values[start:end] for start, end in itertools.pairwise(splits)]

    def _to_arrow(self, name: str) -> _native.ArrowColumn:
        items = arrow_of("item", self.values)
        splits = np.ascontiguousarray(self._wide_splits())
        return _native.ArrowColumn(name, "+L", len(self), [splits], [items])

    def __repr__(self) -> str:
        return f"Ragged(rows={len(self)}, values={self.values!r})"


Values: TypeAlias = Array | Bytes | Ragged


def take_values(values: Values, starts: Array, counts: Array) -> Any:
    """Returns rows `starts[i]` to `starts[i] + counts[i]` of `values` for each i, one after the
    other.
    """
    if isinstance(values, (Bytes, Ragged)):
        return values._take_rows(starts, counts)
    return take_rows(np.asarray(values), starts, counts)


def _padded_numbers(values: Array, starts: Array, kept: Array, width: int, pad: Any) -> Array:
    shape = (len(kept), width, *values.shape[1:])
    check_padded(shape, values.itemsize)
    padded = aligned_zeros(shape, values.dtype)
    filler = _filler(pad, values.dtype)
    if values.dtype.hasobject or filler.tobytes().strip(b"\0"):
        padded[...] = filler
    if values.dtype.hasobject:
        padded[np.arange(width) < kept[:, None]] = take_rows(values, starts, kept)
    elif padded.size:
        memory, row_bytes = as_bytes(values)
        places = np.arange(len(kept)) * (width * row_bytes)
        space = padded.reshape(-1).view(np.uint8)
        _native.place_pieces(memory, starts * row_bytes, kept * row_bytes, places, space)
    return padded


def _filler(pad: Any, dtype: np.dtype[Any]) -> Array:
    """Returns `pad` as a value of the dtype. Raises ValueError if it does not fit."""
    filler = np.asarray(pad)
    if filler.ndim:
        raise ValueError(f"pad must be one value, not {pad!r}.")
    with np.errstate(invalid="ignore"):
        fitted = filler.astype(dtype)
    if dtype.kind in "biu" and fitted != filler:
        raise ValueError(f"pad={pad!r} does not fit in {dtype}.")
    return fitted


def _padded_strings(strings: Bytes, starts: Array, kept: Array, width: int, pad: Any) -> Bytes:
    if isinstance(pad, int) and pad == 0:
        pad = b""
    if not isinstance(pad, bytes):
        raise TypeError(f"pad must be bytes for byte strings, not {type(pad).__name__}.")
    in_row = math.prod(strings.shape[1:])
    shape = (len(kept), width, *strings.shape[1:])
    check_padded(shape, len(pad) + np.dtype(np.int64).itemsize)
    firsts, counts = starts * in_row, kept * in_row
    is_pad = np.arange(width * in_row) >= counts[:, None]
    sizes = np.full(is_pad.shape, len(pad))
    sizes[~is_pad] = take_rows(np.diff(strings.offsets), firsts, counts)
    offsets = splits_of(sizes.reshape(-1))
    data: npt.NDArray[np.uint8] = aligned_zeros((int(offsets[-1]),), np.dtype(np.uint8))
    if is_pad.size:
        begins = strings.offsets[firsts]
        bytes_ = strings.offsets[firsts + counts] - begins
        places = offsets[:-1].reshape(is_pad.shape)
        _native.place_pieces(strings.data, begins, bytes_, places[:, 0], data)
        if pad:
            fills = places[is_pad]
            space = np.full(len(fills), len(pad))
            _native.place_pieces(
                np.frombuffer(pad, np.uint8), np.zeros_like(space), space, fills, data
            )
    return Bytes(data, offsets, shape)
