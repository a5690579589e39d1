"""Features of which each row has as many values as it likes: all values, and where rows begin."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import tensorflow as tf

#: What a parse of one record gives of a feature. "row": all of it, of the same shape in each row.
#: Else there are its values; of a sparse tensor also their indices, [[0], [1], ...], and its shape.
Kind = Literal["row", "values", "indices", "shape"]


@dataclass(frozen=True)
class ParsedPart:
    """A tensor that a parse of one record gives."""

    key: str
    kind: Kind = "row"
    #: The shape of each of the values that "values" has.
    of_value: tuple[int, ...] = ()
    #: The op that gave its rows other lengths than those that were parsed, if one did.
    changed_by: str = ""

    @property
    def rows(self) -> tuple[str, str]:
        """Parts of which this is the same have rows of the same lengths."""
        return self.key, self.changed_by


@dataclass(frozen=True)
class VariableRows:
    """A column whose rows have different lengths."""

    #: The values of all rows: they are the first dimension.
    values: Any
    #: Where each row begins, and where the last one ends.
    splits: Any

    @property
    def row_count(self) -> Any:
        return tf.size(self.splits) - 1

    @property
    def lengths(self) -> Any:
        return self.splits[1:] - self.splits[:-1]

    @functools.cached_property
    def row_numbers(self) -> Any:
        """The row of each value."""
        return tf.repeat(tf.range(tf.cast(self.row_count, tf.int64)), self.lengths)

    @functools.cached_property
    def _and_one_more(self) -> Any:
        """The values and another, so that there is something to pick even if there are none."""
        return tf.concat([self.values, tf.zeros([1, *self.values.shape[1:]], self.dtype)], 0)

    @property
    def dtype(self) -> Any:
        return self.values.dtype

    def at(self, place: int) -> tuple[Any, Any]:
        """The value at a place in each row, -1 is the last one, and in which rows it is there."""
        is_there = self.lengths > place if place >= 0 else self.lengths >= -place
        places = (self.splits[:-1] if place >= 0 else self.splits[1:]) + place
        places = tf.where(is_there, places, tf.zeros_like(places))
        return tf.gather(self._and_one_more, places), is_there

    def between(self, begin: int, end: int | None) -> VariableRows:
        """The values from one place in each row to another, as far as they are there."""
        lengths = self.lengths
        starts = _place(begin, lengths)
        ends = lengths if end is None else _place(end, lengths)
        splits = _splits(tf.maximum(ends - starts, tf.zeros([], tf.int64)))
        shifts = tf.repeat(self.splits[:-1] + starts - splits[:-1], splits[1:] - splits[:-1])
        return VariableRows(tf.gather(self.values, shifts + tf.range(splits[-1])), splits)

    def with_more(self, counts: Any, value: Any) -> VariableRows:
        """The rows with so many more values, before and after those that are there."""
        splits = _splits(self.lengths + counts[:, 0] + counts[:, 1])
        shifts = tf.repeat(splits[:-1] + counts[:, 0] - self.splits[:-1], self.lengths)
        places = shifts + tf.range(self.splits[-1])
        filled = tf.fill(splits[-1:], value)
        return VariableRows(
            tf.tensor_scatter_nd_update(filled, places[:, tf.newaxis], self.values), splits
        )

    def of_length(
        self, count: int, of_value: Sequence[int], filling: Any = None
    ) -> tuple[Any, Any]:
        """A tensor of all rows, with so many values each, and which rows have as many.

        -1 stands for as many as the longest row has.
        """
        tensor = tf.raw_ops.RaggedTensorToTensor(
            shape=tf.constant([-1, count, *of_value], tf.int64),
            values=self.values,
            default_value=tf.zeros([], self.dtype) if filling is None else filling,
            row_partition_tensors=[self.splits],
            row_partition_types=["ROW_SPLITS"],
        )
        return tensor, tf.equal(self.lengths, count)

    def padded(self) -> tuple[Any, Any]:
        """A tensor that is right if all rows have the same length, and whether they have."""
        ragged = tf.RaggedTensor.from_row_splits(self.values, self.splits, validate=False)
        return ragged.to_tensor(), tf.reduce_all(tf.equal(self.lengths, self.lengths[:1]))

    def serialized(self) -> Any:
        """What tf.data makes of the rows as a sparse tensor."""
        ragged = tf.RaggedTensor.from_row_splits(self.values, self.splits, validate=False)
        sparse = ragged.to_sparse()
        return tf.raw_ops.SerializeSparse(
            sparse_indices=sparse.indices,
            sparse_values=sparse.values,
            sparse_shape=sparse.dense_shape,
            out_type=tf.variant,
        )


def _place(place: int, lengths: Any) -> Any:
    """Where a bound of a slice is in rows of these lengths."""
    bound = tf.constant(place, tf.int64)
    return tf.minimum(bound, lengths) if place >= 0 else tf.maximum(lengths + bound, 0)


def _splits(lengths: Any) -> Any:
    return tf.concat([[0], tf.cumsum(lengths)], 0)


def columns_of(parts: Sequence[ParsedPart], parsed: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    """The column of each part, and booleans that are true if rows are as TensorFlow parses them."""
    columns, checks = [], []
    rows_of: dict[str, VariableRows] = {}
    for part in parts:
        if part.kind == "row":
            columns.append(parsed[part.key])
            continue
        if part.key not in rows_of:
            rows_of[part.key], is_right = _rows_of(parsed[part.key], part.of_value)
            checks += is_right
        rows = rows_of[part.key]
        if part.kind == "shape":
            columns.append(rows.lengths[:, tf.newaxis])
        else:
            columns.append(rows)
    return columns, checks


def _rows_of(ragged: Any, of_value: tuple[int, ...]) -> tuple[VariableRows, list[Any]]:
    values, splits, width = ragged.flat_values, ragged.row_splits, math.prod(of_value)
    if not of_value:
        return VariableRows(values, splits), []
    is_right = tf.reduce_all(tf.equal(splits % width, 0))
    whole = values[: tf.size(values) // width * width]
    return VariableRows(tf.reshape(whole, [-1, *of_value]), splits // width), [is_right]
