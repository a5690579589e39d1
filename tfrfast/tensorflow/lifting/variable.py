"""Features with any number of values in each row: all values, and the beginnings of rows."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import tensorflow as tf

#: A parse's output for a feature of one record. "row": the whole feature, of the same shape in each
#: row. Otherwise the feature's values; of a sparse tensor also the indices, [[0], [1], ...], and
#: the shape.
Kind = Literal["row", "values", "indices", "shape"]


@dataclass(frozen=True)
class ParsedPart:
    """A tensor from the parse of one record."""

    key: str
    kind: Kind = "row"
    #: The shape of a value of "values".
    of_value: tuple[int, ...] = ()
    #: The op, if any, that changed the parsed lengths of rows.
    changed_by: str = ""

    @property
    def rows(self) -> tuple[str, str]:
        """Parts with equal `rows` have rows of the same lengths."""
        return self.key, self.changed_by


class ParsedRecord(NamedTuple):
    """The features that an op parses, and the meaning of its outputs."""

    features: dict[str, Any]
    #: The meaning of each output, by name. Other outputs have no column.
    parts: dict[str, ParsedPart]
    #: The feature lists of a SequenceExample, and how their slots differ; None for an Example.
    lists: dict[str, dict[str, Any]] | None = None


@dataclass(frozen=True)
class VariableRows:
    """A column whose rows have different lengths."""

    #: The values of all rows, along the first dimension.
    values: Any
    #: The beginning of each row, and the end of the last row.
    splits: Any

    @property
    def row_count(self) -> Any:
        return tf.size(self.splits) - 1

    @property
    def dtype(self) -> Any:
        return self.values.dtype

    @functools.cached_property
    def lengths(self) -> Any:
        return self.splits[1:] - self.splits[:-1]

    def between(self, begin: int, end: int | None) -> VariableRows:
        """Returns the existing values from one place of each row to another."""
        begins = self.splits[:-1]
        starts = begins + _place(begin, self.lengths)
        ends = self.splits[1:] if end is None else begins + _place(end, self.lengths)
        # A trace of tf.repeat() takes 11 ms.
        splits, places = tf.raw_ops.RaggedRange(
            starts=starts,
            limits=tf.maximum(starts, ends),
            deltas=tf.constant(1, tf.int64),
            Tsplits=tf.int64,
        )
        return VariableRows(tf.gather(self.values, places), splits)

    def of_length(self, count: int, filling: Any = None) -> tuple[Any, Any]:
        """Returns a tensor of all rows, with so many values each, and a mask of the rows of this
        length.

        -1 stands for the length of the longest row.
        """
        tensor = tf.raw_ops.RaggedTensorToTensor(
            shape=tf.constant([-1, count, *self.values.shape[1:]], tf.int64),
            values=self.values,
            default_value=tf.zeros([], self.dtype) if filling is None else filling,
            row_partition_tensors=[self.splits],
            row_partition_types=["ROW_SPLITS"],
        )
        return tensor, tf.equal(self.lengths, count)

    def padded(self) -> tuple[Any, Any]:
        """Returns a tensor of all rows, valid if all rows have the same length, and a mask of the
        rows of the first row's length.
        """
        return self.of_length(-1)[0], tf.equal(self.lengths, self.lengths[:1])

    def serialized(self) -> Any:
        """Returns tf.data's form of the rows as a sparse tensor."""
        ragged = tf.RaggedTensor.from_row_splits(self.values, self.splits, validate=False)
        sparse = ragged.to_sparse()
        return tf.raw_ops.SerializeSparse(
            sparse_indices=sparse.indices,
            sparse_values=sparse.values,
            sparse_shape=sparse.dense_shape,
            out_type=tf.variant,
        )


def _place(place: int, lengths: Any) -> Any:
    """Returns the place of a slice's bound in rows of these lengths."""
    bound = tf.constant(place, tf.int64)
    return tf.minimum(bound, lengths) if place >= 0 else tf.maximum(lengths + bound, 0)


def columns_of(parts: Sequence[ParsedPart], parsed: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    """Returns the column of each part, and booleans: true if rows equal TensorFlow's parse."""
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
            columns.append(tf.expand_dims(rows.lengths, 1))
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
