"""What parsing gives: columns of a batch. Plain arrays where rows have one shape, these otherwise.

Every array here is 64-byte aligned, writable, and accepted by DLPack consumers.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias, overload

import numpy as np
import numpy.typing as npt

__all__ = ["Batch", "Bytes", "Column", "Ragged", "Sparse"]

Array = npt.NDArray[Any]


class Bytes:
    """Byte strings of any length, end to end in one array.

    String `i`, counted through the whole `shape`, is `data[offsets[i]:offsets[i + 1]]`.
    """

    __slots__ = ("data", "offsets", "shape")

    def __init__(
        self,
        data: npt.NDArray[np.uint8],
        offsets: npt.NDArray[np.int64],
        shape: tuple[int, ...] | None = None,
    ) -> None:
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
    def __getitem__(self, index: int | tuple[int, ...]) -> Any: ...
    def __getitem__(self, index: int | slice | tuple[int, ...]) -> Any:
        """`bytes` for a full index, and a view as `Bytes` for part of one or a slice of rows."""
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step != 1:
                raise ValueError("rows of byte strings can only be sliced without a step")
            stop = max(start, stop)
            row = self.size // len(self) if len(self) else 0
            return Bytes(
                self.data,
                self.offsets[start * row : stop * row + 1],
                (stop - start, *self.shape[1:]),
            )
        full = index if isinstance(index, tuple) else (index,)
        if len(full) > self.ndim:
            raise IndexError(f"{len(full)} indices for {self.ndim} dimensions")
        first, rest = 0, self.size
        for position, size in zip(full, self.shape, strict=False):
            number = int(position)
            if not -size <= number < size:
                raise IndexError(f"index {number} is out of range for {size} rows")
            rest //= size
            first += (number % size) * rest
        if len(full) < self.ndim:
            offsets = self.offsets[first : first + rest + 1]
            return Bytes(self.data, offsets, self.shape[len(full) :])
        return self.data[self.offsets[first] : self.offsets[first + 1]].tobytes()

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def tolist(self) -> Any:
        """Nested lists of `bytes`."""
        return self.to_numpy().tolist()

    def to_numpy(self) -> npt.NDArray[np.object_]:
        """An array of `bytes` objects."""
        first = int(self.offsets[0])
        whole = self.data[first : self.offsets[-1]].tobytes()
        ends = (self.offsets - first).tolist()
        strings = np.empty(self.size, dtype=object)
        strings[:] = [whole[start:end] for start, end in itertools.pairwise(ends)]
        return strings.reshape(self.shape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("byte strings cannot become an array without a copy")
        strings = self.to_numpy()
        return strings if dtype is None else strings.astype(dtype)

    def __repr__(self) -> str:
        return f"Bytes(shape={self.shape}, {int(self.offsets[-1] - self.offsets[0])} bytes)"


class Ragged:
    """Rows of any length: row `i` is `values[row_splits[i]:row_splits[i + 1]]`.

    `values` is an array, `Bytes`, or `Ragged` where rows hold rows.
    """

    __slots__ = ("row_splits", "values")

    def __init__(self, values: Array | Bytes | Ragged, row_splits: Array) -> None:
        self.values = values
        self.row_splits = row_splits

    def __len__(self) -> int:
        return len(self.row_splits) - 1

    @overload
    def __getitem__(self, index: slice) -> Ragged: ...
    @overload
    def __getitem__(self, index: int) -> Any: ...
    def __getitem__(self, index: int | slice) -> Any:
        """The values of a row, or some rows; a view."""
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step != 1:
                raise ValueError("ragged rows can only be sliced without a step")
            splits = self.row_splits[start : max(start, stop) + 1]
            return Ragged(self.values[int(splits[0]) : int(splits[-1])], splits - splits[0])
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} is out of range for {len(self)} rows")
        index %= len(self)
        return self.values[int(self.row_splits[index]) : int(self.row_splits[index + 1])]

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    @property
    def row_lengths(self) -> Array:
        """How many values each row has."""
        return np.diff(self.row_splits)

    def tolist(self) -> list[Any]:
        """Nested lists."""
        values = self.values.tolist()
        splits = self.row_splits.tolist()
        return [values[start:end] for start, end in itertools.pairwise(splits)]

    def __repr__(self) -> str:
        return f"Ragged(rows={len(self)}, values={self.values!r})"


class Sparse:
    """Values and where they stand: `indices` has one row of positions for each of `values`."""

    __slots__ = ("dense_shape", "indices", "values")

    def __init__(
        self,
        indices: npt.NDArray[np.int64],
        values: Array | Bytes,
        dense_shape: npt.NDArray[np.int64],
    ) -> None:
        self.indices = indices
        self.values = values
        self.dense_shape = dense_shape

    def to_dense(self, fill: Any = None) -> Array:
        """An array of `dense_shape`, with `fill` (zero or b"") where no value stands."""
        if isinstance(self.values, Bytes):
            dense = np.full(self.dense_shape, b"" if fill is None else fill, dtype=object)
            dense[tuple(self.indices.T)] = self.values.to_numpy()
        else:
            dense = np.full(self.dense_shape, 0 if fill is None else fill, self.values.dtype)
            dense[tuple(self.indices.T)] = self.values
        return dense

    def __repr__(self) -> str:
        return f"Sparse(dense_shape={self.dense_shape.tolist()}, values={self.values!r})"


Values: TypeAlias = Array | Bytes | Ragged
Column: TypeAlias = Array | Bytes | Ragged | Sparse


class Batch(dict[str, Any]):
    """The columns of a batch by name.

    `indices` are the record numbers of the rows, `valid` tells real rows from padding.
    """

    def __init__(
        self,
        columns: Mapping[str, Column],
        indices: npt.NDArray[np.int64],
        valid: npt.NDArray[np.bool_],
    ) -> None:
        super().__init__(columns)
        self.indices = indices
        self.valid = valid

    def __reduce__(self) -> tuple[Any, ...]:
        return Batch, (dict(self), self.indices, self.valid)
