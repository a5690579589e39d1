"""Columns made from other columns: sparse positions, and rows divided into rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tfrfast._native import max_padded_bytes
from tfrfast.columns import Bytes, Column, Ragged, Sparse
from tfrfast.columns.arrays import Array, aligned, aligned_zeros, splits_of
from tfrfast.errors import FeatureError
from tfrfast.features import Partition

__all__ = ["Indivisible", "as_sparse", "divide", "place", "with_splits"]

# The length, copies of it, and its share of the row splits.
_BYTES_OF_A_LENGTH = 5 * 8


def _as_ragged(column: Column) -> Ragged:
    """Returns the rows of a column that was parsed as rows of any length."""
    if isinstance(column, Sparse):
        counts = np.bincount(column.indices[:, 0], minlength=int(column.dense_shape[0]))
        return Ragged(column.values, splits_of(counts))
    assert isinstance(column, Ragged)
    return column


def as_sparse(column: Column) -> Sparse:
    """Returns the values of ragged rows at (row, position in the row)."""
    if isinstance(column, Sparse):
        return column
    rows = _as_ragged(column)
    assert not isinstance(rows.values, Ragged)
    lengths = rows.row_lengths
    indices = aligned_zeros((int(rows.row_splits[-1]), 2), np.dtype(np.int64))
    indices[:, 0] = np.repeat(np.arange(len(rows)), lengths)
    indices[:, 1] = np.arange(len(indices)) - np.repeat(rows.row_splits[:-1], lengths)
    shape = np.array([len(rows), lengths.max(initial=0)], np.int64)
    return Sparse(indices, rows.values, shape)


def place(
    name: str,
    index_columns: Sequence[Column],
    value_column: Column,
    size: tuple[int, ...],
    *,
    already_sorted: bool,
) -> Sparse:
    """Returns the values at the positions that other features hold."""
    rows = _as_ragged(value_column)
    indices = aligned_zeros((int(rows.row_splits[-1]), 1 + len(size)), np.dtype(np.int64))
    indices[:, 0] = np.repeat(np.arange(len(rows)), rows.row_lengths)
    for dimension, column in enumerate(index_columns, start=1):
        positions = _as_ragged(column)
        different = np.flatnonzero(positions.row_splits != rows.row_splits)
        if len(different):
            raise FeatureError(
                f"Feature {name!r}: row {int(different[0]) - 1} does not have as many positions as "
                "values. Each value needs a position in every dimension.",
                record=int(different[0]) - 1,
            )
        indices[:, dimension] = np.asarray(positions.values)
    values: Any = rows.values
    if not already_sorted:
        order = np.lexsort(indices.T[::-1])
        if (order[1:] < order[:-1]).any():
            indices = aligned(indices[order])
            values = values[order] if isinstance(values, Bytes) else aligned(values[order])
    return Sparse(indices, values, np.array([len(rows), *size], np.int64))


class Indivisible(Exception):  # noqa: N818
    """A row that cannot be divided, and the reason."""

    def __init__(self, row: int, why: str) -> None:
        super().__init__(row, why)
        self.row = row
        self.why = why


def divide(column: Column, partitions: Sequence[Partition], parsed: Mapping[str, Column]) -> Ragged:
    """Divides rows into rows of rows. The last partition is the innermost. May return an
    Indivisible.
    """
    rows = _as_ragged(column)
    for how, argument in reversed(partitions):
        if how == "uniform_row_length":
            rows = _divide_uniformly(rows, int(argument))
        else:
            rows = _divide_by(rows, how, _as_ragged(parsed[str(argument)]))
    return rows


def _divide_uniformly(rows: Ragged, length: int) -> Ragged:
    uneven = np.flatnonzero(rows.row_lengths % length)
    if len(uneven):
        row = int(uneven[0])
        found = int(rows.row_lengths[row])
        raise Indivisible(row, f"its {found} values are not a multiple of {length}")
    splits = aligned(rows.row_splits // length)
    values = rows.values
    if isinstance(values, Ragged):
        inner = aligned(np.arange(int(splits[-1]) + 1) * length)
        return Ragged(Ragged(values, inner), splits)
    if isinstance(values, Bytes):
        shape = (values.size // length, length) if values.ndim == 1 else _grouped(values, length)
        return Ragged(Bytes(values.data, values.offsets, shape), splits)
    return Ragged(values.reshape(-1, length, *values.shape[1:]), splits)


def _grouped(values: Bytes, length: int) -> tuple[int, ...]:
    return (values.shape[0] // length, length, *values.shape[1:])


def _divide_by(rows: Ragged, how: str, partition: Ragged) -> Ragged:
    """Divides each row into the rows that the same row of `partition` describes."""
    lengths: list[Array] = []
    space = max_padded_bytes() // _BYTES_OF_A_LENGTH
    for row in range(len(rows)):
        total = int(rows.row_splits[row + 1] - rows.row_splits[row])
        numbers: Array = partition[row]
        lengths.append(_lengths_of(row, how, numbers, total, space))
        space -= len(lengths[-1])
    outer = splits_of(np.array([len(part) for part in lengths], np.int64))
    inner = splits_of(np.concatenate(lengths) if lengths else np.zeros(0, np.int64))
    return Ragged(Ragged(rows.values, inner), outer)


def _lengths_of(row: int, how: str, numbers: Array, total: int, space: int) -> Array:
    if how == "row_lengths":
        found = numbers
    elif how == "row_splits":
        if len(numbers) and numbers[0] != 0:
            raise Indivisible(row, "its row splits must begin with 0")
        found = np.diff(numbers)
    elif how == "row_limits":
        found = np.diff(numbers, prepend=0)
    elif how == "row_starts":
        if len(numbers) and numbers[0] != 0:
            raise Indivisible(row, "its row starts must begin with 0")
        found = np.diff(numbers, append=total) if len(numbers) else numbers
    else:
        if len(numbers) != total:
            raise Indivisible(row, f"{len(numbers)} row ids for {total} values")
        if len(numbers) and (numbers[0] < 0 or (numbers[1:] < numbers[:-1]).any()):
            raise Indivisible(row, "its row ids do not ascend from 0")
        if len(numbers) and numbers[-1] >= space:
            raise Indivisible(
                row, f"the row id {int(numbers[-1])} needs more than a quarter of the memory"
            )
        found = np.bincount(numbers) if len(numbers) else numbers
    # A sum of larger numbers can wrap around.
    if ((found < 0) | (found > total)).any() or int(found.sum()) != total:
        raise Indivisible(row, f"its parts do not add up to its {total} values")
    return found.astype(np.int64, copy=False)


def with_splits(rows: Ragged, dtype: str) -> Ragged:
    """Returns the same rows with row splits of another integer type, on all levels."""
    if dtype == "int64":
        return rows
    values = rows.values
    if isinstance(values, Ragged):
        values = with_splits(values, dtype)
    return Ragged(values, aligned(rows.row_splits.astype(dtype)))
