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
            batch.require(fits)
            numbers = tf.where(fits, numbers, tf.zeros_like(numbers))
        return batch.copy(node, [values, numbers, tf.constant(axis)], batch_dims=batch_dims)

    return write


GATHERING = {"GatherV2": _gather}
