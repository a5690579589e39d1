"""Features of which each row has as many values as it likes: all values, and where rows begin."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import tensorflow as tf

#: What a parse of one record gives of a feature. "row": all of it, of the same shape in each row.
#: Else there are its values; of a sparse tensor also their indices, [[0], [1], ...], and its shape.
Kind = Literal["row", "values", "indices", "shape"]


@dataclass(frozen=True)
class Part:
    """A tensor that a parse of one record gives."""

    key: str
    kind: Kind = "row"
    #: The shape of each of the values that "values" has.
    of_value: tuple[int, ...] = ()


@dataclass(frozen=True)
class Rows:
    """A column whose rows have different lengths."""

    #: The values of all rows: they are the first dimension.
    values: Any
    #: Where each row begins, and where the last one ends.
    splits: Any

    @property
    def row_count(self) -> Any:
        return tf.size(self.splits) - 1

    def padded(self) -> tuple[Any, Any]:
        """A tensor that is right if all rows have the same length, and whether they have."""
        lengths = self.splits[1:] - self.splits[:-1]
        ragged = tf.RaggedTensor.from_row_splits(self.values, self.splits, validate=False)
        return ragged.to_tensor(), tf.reduce_all(tf.equal(lengths, lengths[:1]))

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


def columns_of(parts: Sequence[Part], parsed: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    """The column of each part, and booleans that are true if rows are as TensorFlow parses them."""
    columns, checks = [], []
    rows_of: dict[str, Rows] = {}
    for part in parts:
        if part.kind == "row":
            columns.append(parsed[part.key])
            continue
        if part.key not in rows_of:
            rows_of[part.key], is_right = _rows_of(parsed[part.key], part.of_value)
            checks += is_right
        rows = rows_of[part.key]
        if part.kind == "shape":
            columns.append((rows.splits[1:] - rows.splits[:-1])[:, tf.newaxis])
        else:
            columns.append(rows)
    return columns, checks


def _rows_of(ragged: Any, of_value: tuple[int, ...]) -> tuple[Rows, list[Any]]:
    values, splits, width = ragged.flat_values, ragged.row_splits, math.prod(of_value)
    if not of_value:
        return Rows(values, splits), []
    is_right = tf.reduce_all(tf.equal(splits % width, 0))
    whole = values[: tf.size(values) // width * width]
    return Rows(tf.reshape(whole, [-1, *of_value]), splits // width), [is_right]
