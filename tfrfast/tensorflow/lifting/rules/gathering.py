"""Values picked by their numbers. A number that is out of range is an error of its row."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrfast.tensorflow.lifting.rules.node import BatchGraph, Node, Write
from tfrfast.tensorflow.lifting.rules.row_shapes import NotVectorisedError


def _gather(node: Node) -> Write:
    """Picks from values that all rows share, or by numbers that all rows share."""
    node.output_shape()
    axis = int(node.constant(2, "an axis")) % node.rank(0)
    count = node.shape(0)[axis]
    if node.attr("batch_dims") or (axis and node.per_row[1]):
        raise NotVectorisedError("picks from parts of a row")
    if node.per_row[0]:
        numbers = node.constant(1, "numbers")
        if ((numbers < 0) | (numbers >= count)).any():
            raise NotVectorisedError("picks values that do not exist")
        return lambda batch, inputs: batch.copy(node, [*inputs[:2], tf.constant(axis + 1)])
    if not count:
        raise NotVectorisedError("picks from nothing")
    node.can_fail()

    def write(batch: BatchGraph, inputs: list[Any]) -> list[Any]:
        values, numbers, at = inputs
        fits = tf.logical_and(numbers >= 0, numbers < tf.cast(count, numbers.dtype))
        batch.require(fits)
        return batch.copy(node, [values, tf.where(fits, numbers, tf.zeros_like(numbers)), at])

    return write


GATHERING = {"GatherV2": _gather}
