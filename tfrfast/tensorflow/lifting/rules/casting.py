"""Casts. If a float is out of range, the resulting integer depends on the float's neighbours."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrfast.tensorflow.lifting.rules.node import BatchGraph, Node, Write

#: Integer types for which vector instructions and scalar instructions give different results.
_NARROW = frozenset([tf.int8, tf.int16, tf.uint8, tf.uint16, tf.uint32])


def _cast(node: Node) -> Write:
    before, after = node.dtype(), node.op.outputs[0].dtype
    if not before.is_floating or after not in _NARROW:
        return lambda batch, inputs: batch.copy(node, inputs)
    node.can_fail()

    def write(batch: BatchGraph, inputs: list[Any]) -> list[Any]:
        (value,) = inputs
        above = value > tf.cast(float(after.min) - 1, before)
        below = value < tf.cast(float(after.max) + 1, before)
        batch.require(tf.logical_and(above, below))  # both are false for NaN
        return batch.copy(node, inputs)

    return write


CASTING = {"Cast": _cast}
