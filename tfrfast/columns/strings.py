"""Byte strings of any length, end to end in one array."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from tfrfast import _native
from tfrfast.base.arguments import no_such
from tfrfast.base.refused_arguments import explains_arguments
from tfrfast.columns.arrays import Array, splits_of, take_rows
from tfrfast.columns.arrow import ArrowExport, fixed_lists

__all__ = ["Bytes"]


class Bytes(ArrowExport):
    """Byte strings of any length, end to end in one array.

    String `i`, counted through the whole `shape`, is `data[offsets[i]:offsets[i + 1]]`. A column is
    indexed and compared like an array of `bytes` objects: `column == b"cat"` is an array of bools.

    >>> column = tfr.parse_example(
    ...     [tfr.encode_example({"name": name}) for name in (b"cat", b"dog", b"cat")],
    ...     {"name": tfr.FixedLen((), "bytes")},
    ... )["name"]
    >>> column[1], column.tolist(), column == b"cat"
    (b'dog', [b'cat', b'dog', b'cat'], array([ True, False,  True]))
    """

    __slots__ = ("data", "offsets", "shape")

    @explains_arguments
    def __init__(
        self,
        data: npt.NDArray[np.uint8],
        offsets: npt.NDArray[np.int64],
        shape: tuple[int, ...] | None = None,
    ) -> None:
        if data.dtype != np.uint8 or offsets.dtype.kind not in "iu":
            raise TypeError(
                "Bytes needs data of uint8 and offsets of integers, not of "
                f"{data.dtype} and {offsets.dtype}."
            )
        if not len(offsets):
            raise ValueError(
                "offsets holds the begin of each string, and then the end of the last one. So even "
                "without strings it holds one number, and it is empty."
            )
        self.data = data
        self.offsets = offsets
        self.shape = (len(offsets) - 1,) if shape is None else tuple(shape)
        if int(np.prod(self.shape, dtype=np.int64)) != len(offsets) - 1:
            raise ValueError(f"{len(offsets) - 1} strings do not have the shape {self.shape}")

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a single string has no length; take it with [()]")
        return self.shape[0]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of strings."""
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, index: slice) -> Bytes: ...
    @overload
    def __getitem__(self, index: Any) -> Any: ...
    def __getitem__(self, index: Any) -> Any:
        """Returns `bytes` for a full index, and `Bytes` for any other index of an array of objects.

        Adjacent strings, as in `column[2:5]` or `column[3]` of two dimensions, are a view. Other
        strings are copied.
        """
        if type(index) is int and len(self.shape) == 1 and -self.shape[0] <= index < self.shape[0]:
            return self._string(index % self.shape[0])
        if isinstance(index, slice) and index.step in (None, 1):
            start, stop, _ = index.indices(len(self))
            stop = max(start, stop)
            row = math.prod(self.shape[1:])
            offsets = self.offsets[start * row : stop * row + 1]
            return Bytes(self.data, offsets, (stop - start, *self.shape[1:]))
        full = index if isinstance(index, tuple) else (index,)
        if not all(map(_is_integer, full)):
            numbers = self._numbers()[index]
            is_array = isinstance(numbers, np.ndarray)  # also without dimensions, after `...`
            return self._taken(numbers) if is_array else self._string(int(numbers))
        if len(full) > self.ndim:
            raise IndexError(f"{len(full)} indices for {self.ndim} dimensions")
        first, rest = 0, self.size
        for number, size in zip(full, self.shape, strict=False):
            if not -size <= number < size:
                raise no_such("Row", int(number), size)
            rest //= size
            first += (int(number) % size) * rest
        if len(full) < self.ndim:
            offsets = self.offsets[first : first + rest + 1]
            return Bytes(self.data, offsets, self.shape[len(full) :])
        return self._string(first)

    def _string(self, number: int) -> bytes:
        string: Array = self.data[self.offsets[number] : self.offsets[number + 1]]
        return string.tobytes()

    def _taken(self, numbers: npt.NDArray[np.int64]) -> Bytes:
        """Returns the strings with these numbers: a view if they are adjacent, else a copy."""
        flat = numbers.reshape(-1)
        if numbers.base is not None and flat.size and (np.diff(flat) == 1).all():
            return Bytes(self.data, self.offsets[flat[0] : flat[-1] + 2], numbers.shape)
        starts = self.offsets[flat]
        sizes = self.offsets[flat + 1] - starts
        data = _native.join_pieces(self.data, starts, sizes)
        return Bytes(data, splits_of(sizes), numbers.shape)

    def _take_rows(self, starts: Array, counts: Array) -> Bytes:
        """Returns a copy of rows `starts[i]` to `starts[i] + counts[i]` for each i, one after the
        other.
        """
        strings = math.prod(self.shape[1:])
        firsts = self.offsets[starts * strings]
        bytes_ = self.offsets[(starts + counts) * strings] - firsts
        sizes = take_rows(np.diff(self.offsets), starts * strings, counts * strings)
        data = _native.join_pieces(self.data, firsts, bytes_)
        return Bytes(data, splits_of(sizes), (int(counts.sum()), *self.shape[1:]))

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __eq__(self, other: object) -> npt.NDArray[np.bool_]:  # type: ignore[override]
        """Compares each string with its counterpart. Shapes are broadcast as in NumPy."""
        if isinstance(other, (bytes, bytearray, memoryview)):
            data = np.frombuffer(other, np.uint8)
            other = Bytes(data, np.array([0, len(data)]), ())
        if isinstance(other, Bytes):
            return self._equals(other)
        kind = getattr(getattr(other, "dtype", None), "kind", None)
        if isinstance(other, str) or kind == "U":
            raise TypeError('Byte strings never equal text. Compare with b"..." or text.encode().')
        equal: npt.NDArray[np.bool_] = np.equal(self.to_numpy(), np.asarray(other, dtype=object))
        return equal

    def __ne__(self, other: object) -> npt.NDArray[np.bool_]:  # type: ignore[override]
        different: npt.NDArray[np.bool_] = np.logical_not(self == other)
        return different

    __hash__ = None  # type: ignore[assignment]

    def _equals(self, other: Bytes) -> npt.NDArray[np.bool_]:
        if self.shape == other.shape:
            ours, theirs = self._pieces(), other._pieces()
            shape = self.shape
        else:
            numbers = np.broadcast_arrays(self._numbers(), other._numbers())
            shape = numbers[0].shape
            ours = self._pieces(numbers[0].reshape(-1))
            theirs = other._pieces(numbers[1].reshape(-1))
        equal = _native.equal_pieces(self.data, *ours, other.data, *theirs)
        return equal.reshape(shape)[()]

    def _numbers(self) -> npt.NDArray[np.int64]:
        return np.arange(self.size).reshape(self.shape)

    def _pieces(self, numbers: Any = slice(None)) -> tuple[Array, Array]:
        """Returns the start and the number of bytes of each string."""
        return self.offsets[:-1][numbers], np.diff(self.offsets)[numbers]

    def tolist(self) -> Any:
        """Returns nested lists of `bytes`."""
        strings = _native.byte_strings(self.data, self.offsets)
        return strings if self.ndim == 1 else self._array_of(strings).tolist()

    def to_numpy(self) -> npt.NDArray[np.object_]:
        """Returns an array of `bytes` objects."""
        return self._array_of(_native.byte_strings(self.data, self.offsets))

    def _array_of(self, strings: list[bytes]) -> npt.NDArray[np.object_]:
        array = np.empty(self.size, dtype=object)
        array[:] = strings
        return array.reshape(self.shape)

    def _to_arrow(self, name: str) -> _native.ArrowColumn:
        if not self.shape:
            raise TypeError(f"Column {name!r}: a single string has no rows.")
        leaf = name if self.ndim == 1 else "item"
        offsets = np.ascontiguousarray(self.offsets, np.int64)
        data = np.ascontiguousarray(self.data)
        strings = _native.ArrowColumn(leaf, "Z", self.size, [offsets, data])
        return fixed_lists(name, self.shape, strings)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("byte strings cannot become an array without a copy")
        strings = self.to_numpy()
        return strings if dtype is None else strings.astype(dtype)

    def __repr__(self) -> str:
        return f"Bytes(shape={self.shape}, {int(self.offsets[-1] - self.offsets[0])} bytes)"


def _is_integer(index: object) -> bool:
    return isinstance(index, (int, np.integer)) and not isinstance(index, bool)
