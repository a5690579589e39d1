"""Ops that move, join, cut or repeat the values of a row. A batch has one more dimension, first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from tfrfast.tensorflow.lifting.rules.node import BatchGraph, Node, Rule, Write
from tfrfast.tensorflow.lifting.rules.row_shapes import NotVectorisedError


def moved(axis: Any) -> Any:
    """Returns the axis of a batch for an axis of a row. An axis that counts from the end stays the
    same.
    """
    axis = np.asarray(axis)
    return np.where(axis >= 0, axis + 1, axis).astype(axis.dtype)


def _reshape(node: Node) -> Write:
    node.is_only_per_row(0)
    before, after = node.shape(0), node.output_shape()
    if np.prod(before, dtype=object) != np.prod(after, dtype=object):
        raise NotVectorisedError("changes how many values a row has")
    return lambda batch, inputs: [batch.reshape(inputs[0], after)]


def _same(node: Node) -> Write:
    """tf.ensure_shape, whose shape is known to be right."""
    if node.shape(0) != node.output_shape():
        raise NotVectorisedError("has a shape that is known only when it runs")
    return lambda batch, inputs: [inputs[0]]


def _with_constant(position: int, what: str, change: Callable[[Any, Node], Any]) -> Rule:
    """An op with a constant input that has an entry for each dimension."""

    def plan(node: Node) -> Write:
        if any(each for number, each in enumerate(node.per_row) if number != 0):
            raise NotVectorisedError(f"takes {what} that differs from row to row")
        changed = change(node.constant(position, what), node)

        def write(batch: BatchGraph, inputs: list[Any]) -> list[Any]:
            inputs[position] = tf.constant(changed)
            return batch.copy(node, inputs)

        return write

    return plan


def _before(first: Any) -> Callable[[Any, Node], Any]:
    """Puts the entry for the dimension of rows before the entries of a row's own dimensions."""

    def change(values: Any, node: Node) -> Any:
        return np.concatenate([np.asarray([first], values.dtype), values])

    return change


def _order(values: Any, node: Node) -> Any:
    rank = node.rank(0)
    axes = [int(each) % rank + 1 for each in values]
    return np.asarray([0, *axes], values.dtype)


def _joined(axis_is_input: bool) -> Rule:
    """tf.concat and tf.stack. Parts that all rows share are repeated for each row."""

    def plan(node: Node) -> Write:
        count = len(node.op.inputs) - axis_is_input
        shapes = [node.shape(number) for number in range(count)]
        axis = moved(node.constant(count, "an axis") if axis_is_input else node.attr("axis"))

        def write(batch: BatchGraph, inputs: list[Any]) -> list[Any]:
            parts = [
                inputs[number] if node.per_row[number] else batch.repeated(inputs[number], shape)
                for number, shape in enumerate(shapes)
            ]
            if axis_is_input:
                return batch.copy(node, [*parts, tf.constant(axis)])
            return batch.copy(node, parts, axis=int(axis))

        return write

    return plan


def _unstack(node: Node) -> Write:
    axis = int(moved(node.attr("axis")))
    return lambda batch, inputs: batch.copy(node, inputs, axis=axis)


def _split(node: Node) -> Write:
    node.is_only_per_row(1)
    axis = moved(node.constant(0, "an axis"))
    return lambda batch, inputs: batch.copy(node, [tf.constant(axis), inputs[1]])


_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


def _strided_slice(node: Node) -> Write:
    node.is_only_per_row(0)
    node.output_shape()
    bounds = [
        np.insert(node.constant(number, "bounds"), 0, first)
        for number, first in ((1, 0), (2, 0), (3, 1))
    ]
    masks = {name: node.attr(name) << 1 for name in _MASKS}
    masks["begin_mask"] |= 1  # all rows
    masks["end_mask"] |= 1
    return lambda batch, inputs: batch.copy(node, [inputs[0], *map(tf.constant, bounds)], **masks)


def _slice(node: Node) -> Write:
    node.is_only_per_row(0)
    node.output_shape()
    begin = np.insert(node.constant(1, "bounds"), 0, 0)
    size = np.insert(node.constant(2, "bounds"), 0, -1)  # all rows
    return lambda batch, inputs: batch.copy(
        node, [inputs[0], tf.constant(begin), tf.constant(size)]
    )


def _one_hot(node: Node) -> Write:
    node.is_only_per_row(0)
    node.output_shape()
    axis = int(moved(node.attr("axis")))
    return lambda batch, inputs: batch.copy(node, inputs, axis=axis)


SHAPES = {
    "ConcatV2": _joined(axis_is_input=True),
    "EnsureShape": _same,
    "ExpandDims": _reshape,
    "OneHot": _one_hot,
    "Pack": _joined(axis_is_input=False),
    "Pad": _with_constant(1, "paddings", _before([0, 0])),
    "PadV2": _with_constant(1, "paddings", _before([0, 0])),
    "Reshape": _reshape,
    "ReverseV2": _with_constant(1, "an axis", lambda axes, node: moved(axes)),
    "Slice": _slice,
    "Split": _split,
    "Squeeze": _reshape,
    "StridedSlice": _strided_slice,
    "Tile": _with_constant(1, "multiples", _before(1)),
    "Transpose": _with_constant(1, "an order of dimensions", _order),
    "Unpack": _unstack,
}
