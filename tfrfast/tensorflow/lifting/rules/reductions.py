"""Ops that reduce or accumulate along dimensions of a row."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tfrfast.tensorflow.lifting.rules.node import Node, Write
from tfrfast.tensorflow.lifting.rules.row_shapes import NotVectorisedError
from tfrfast.tensorflow.lifting.rules.shapes import moved


def _along_axes(node: Node) -> Write:
    node.is_only_per_row(0)
    rank = node.rank(0)
    axes = node.constant(1, "axes")
    changed = np.asarray([int(axis) % rank + 1 for axis in axes.reshape(-1)], axes.dtype)
    return lambda batch, inputs: batch.copy(node, [inputs[0], tf.constant(changed)])


def _along_one_axis(node: Node) -> Write:
    node.is_only_per_row(0)
    if not node.rank(0):
        raise NotVectorisedError("is given single values")
    axis = moved(node.constant(1, "an axis"))
    return lambda batch, inputs: batch.copy(node, [inputs[0], tf.constant(axis)])


REDUCTIONS = {
    "All": _along_axes,
    "Any": _along_axes,
    "ArgMax": _along_one_axis,
    "ArgMin": _along_one_axis,
    "Max": _along_axes,
    "Min": _along_axes,
    # Floats are added and multiplied in another order.
    "EuclideanNorm": _along_axes,
    "Mean": _along_axes,
    "Prod": _along_axes,
    "Sum": _along_axes,
}
