"""Values and their positions."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import numpy.typing as npt

from tfrfast._native import ArrowColumn
from tfrfast.base.refused_arguments import explains_arguments
from tfrfast.columns.arrays import Array, check_padded, take_rows
from tfrfast.columns.arrow import ArrowExport, arrow_of, struct_of
from tfrfast.columns.ragged import take_values
from tfrfast.columns.rows import is_number, row_numbers
from tfrfast.columns.strings import Bytes

__all__ = ["Sparse"]


class Sparse(ArrowExport):
    """Values and their positions: `indices` has one row of positions for each of `values`.

    >>> column = tfr.Sparse(np.array([[0, 2], [1, 0]]), np.array([7, 8]), np.array([2, 3]))
    >>> column.to_dense().tolist()
    [[0, 0, 7], [8, 0, 0]]
    """

    __slots__ = ("dense_shape", "indices", "values")

    @explains_arguments
    def __init__(
        self,
        indices: npt.NDArray[np.int64],
        values: Array | Bytes,
        dense_shape: npt.NDArray[np.int64],
    ) -> None:
        self.indices = indices
        self.values = values
        self.dense_shape = dense_shape

    def __len__(self) -> int:
        if not len(self.dense_shape):
            raise TypeError("A single value has no length: take it with to_dense()[()].")
        return int(self.dense_shape[0])

    def __getitem__(self, index: Any) -> Sparse:
        """Returns the rows of a slice, a mask or a list of row numbers; or one row, without its
        dimension.

        Rows are copied. The other dimensions keep their size.
        """
        if is_number(index):
            row = self[[operator.index(index)]]
            return Sparse(row.indices[:, 1:], row.values, self.dense_shape[1:].copy())
        chosen = row_numbers(index, len(self))
        indices, values = self.indices, self.values
        rows = indices[:, 0]
        if (rows[1:] < rows[:-1]).any():
            order = np.argsort(rows, kind="stable")
            indices, values, rows = indices[order], values[order], rows[order]
        begins = np.searchsorted(rows, chosen)
        counts = np.searchsorted(rows, chosen, side="right") - begins
        taken = take_rows(indices, begins, counts)
        taken[:, 0] = np.repeat(np.arange(len(chosen)), counts)
        shape = self.dense_shape.copy()
        shape[0] = len(chosen)
        return Sparse(taken, take_values(values, begins, counts), shape)

    @explains_arguments
    def to_dense(self, fill: Any = None) -> Array:
        """Returns an array of `dense_shape`, with `fill` (zero or b"") where no value is."""
        value_bytes = 8 if isinstance(self.values, Bytes) else self.values.itemsize
        check_padded(self.dense_shape.tolist(), value_bytes)
        if isinstance(self.values, Bytes):
            dense = np.full(self.dense_shape, b"" if fill is None else fill, dtype=object)
            values = self.values.to_numpy()
        else:
            dense = np.full(self.dense_shape, 0 if fill is None else fill, self.values.dtype)
            values = self.values
        if dense.ndim:
            dense[tuple(self.indices.T)] = values
        elif len(values):
            dense[()] = values[-1]
        return dense

    def _to_arrow(self, name: str) -> ArrowColumn:
        """Returns rows of pairs of a position and a value."""
        rows = self.indices[:, 0]
        if (rows[1:] < rows[:-1]).any():
            return self[np.arange(len(self))]._to_arrow(name)
        positions = self.indices[:, 1] if self.indices.shape[1] == 2 else self.indices[:, 1:]
        parts = [arrow_of("position", positions), arrow_of("value", self.values)]
        pairs = struct_of("item", len(self.indices), parts)
        splits = np.searchsorted(rows, np.arange(len(self) + 1))
        return ArrowColumn(name, "+L", len(self), [splits], [pairs])

    def __repr__(self) -> str:
        return f"Sparse(dense_shape={self.dense_shape.tolist()}, values={self.values!r})"
