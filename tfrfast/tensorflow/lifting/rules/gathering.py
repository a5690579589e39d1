"""Values picked by their numbers. A number that is out of range is an error of its row."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from tfrfast.tensorflow.lifting.rules.node import BatchGraph, Node, Write
from tfrfast.tensorflow.lifting.rules.row_shapes import NotVectorisedError
from tfrfast.tensorflow.lifting.rules.shapes import moved


def _gather(node: Node) -> Write:
    node.is_only_per_row(0, 1)
    node.output_shape()
    rank = node.rank(0)
    axis = int(node.constant(2, "an axis")) % rank
    count, batch_dims = node.shape(0)[axis], node.attr("batch_dims")
    if batch_dims < 0:
        batch_dims += node.rank(1)
    from_rows, by_rows = node.per_row[:2]
    if by_rows and not from_rows and axis:
        raise NotVectorisedError("picks along another dimension than the first")
    if from_rows and not by_rows:
        if batch_dims:
            raise NotVectorisedError("picks by the same numbers from each row")
        numbers = node.constant(1, "numbers")
        if ((numbers < 0) | (numbers >= count)).any():
            raise NotVectorisedError("picks values that do not exist")
    elif not count:
        raise NotVectorisedError("picks from nothing")
    else:
        node.can_fail()
    axis = moved(np.int32(axis)) if from_rows else np.int32(axis)
    batch_dims += from_rows and by_rows

    def write(batch: BatchGraph, inputs: list[Any]) -> list[Any]:
        values, numbers, _ = inputs
        if node.is_checked:
            fits = tf.logical_and(numbers >= 0, numbers < tf.cast(count, numbers.dtype))
            batch.require(fits, per_row=by_rows)
            numbers = tf.where(fits, numbers, tf.zeros_like(numbers))
        return batch.copy(node, [values, numbers, tf.constant(axis)], batch_dims=batch_dims)

    return write


def _gather_nd(node: Node) -> Write:
    """tf.gather_nd, whose numbers are places along the first dimensions of a row."""
    from_rows, by_rows = node.per_row
    shape = node.shape(1)
    node.output_shape()
    sizes = node.shape(0)[: shape[-1]]
    if 0 in sizes:
        raise NotVectorisedError("picks from nothing")
    if not shape[-1]:
        raise NotVectorisedError("picks whole rows")
    if node.dtype(1) == tf.int16:  # too small for the numbers of rows
        raise NotVectorisedError("takes numbers of 16 bits")
    known = None if by_rows else tf.get_static_value(node.op.inputs[1])
    if known is None or not ((known >= 0) & (known < sizes)).all():
        node.can_fail()

    def write(batch: BatchGraph, inputs: list[Any]) -> list[Any]:
        values, numbers = inputs
        if node.is_checked:
            fits = tf.logical_and(numbers >= 0, numbers < tf.constant(sizes, numbers.dtype))
            batch.require(fits, per_row=by_rows)
            numbers = tf.where(fits, numbers, tf.zeros_like(numbers))
        if from_rows:
            numbers = numbers if by_rows else batch.repeated(numbers, shape)
            rows = tf.range(tf.cast(batch.row_count, numbers.dtype))
            rows = batch.widen(rows, [], len(shape))
            rows *= tf.ones_like(numbers[..., :1])
            numbers = tf.concat([rows, numbers], axis=-1)
        return batch.copy(node, [values, numbers])

    return write


def _search(node: Node) -> Write:
    """tf.searchsorted, whose sorted values are most often the same for all rows."""
    bounds, shape = node.shape(0), node.shape(1)
    from_rows, by_rows = node.per_row
    node.output_shape()

    def write(batch: BatchGraph, inputs: list[Any]) -> list[Any]:
        given, values = inputs
        if not from_rows and bounds[0] == 1:
            return [batch.reshape(batch.copy(node, [given, tf.reshape(values, [1, -1])])[0], shape)]
        given = given if from_rows else batch.repeated(given, bounds)
        values = values if by_rows else batch.repeated(values, shape)
        rows = bounds[0] * batch.row_count
        given = tf.reshape(given, [rows, bounds[1]])
        values = tf.reshape(values, [rows, shape[1]])
        return [batch.reshape(batch.copy(node, [given, values])[0], shape)]

    return write


GATHERING = {
    "GatherNd": _gather_nd,
    "GatherV2": _gather,
    "LowerBound": _search,
    "UpperBound": _search,
}
