"""Ops on features with any number of values in each row."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow.lifting.rules.elementwise import ELEMENTWISE
from tfrfast.tensorflow.lifting.rules.lookups import LOOKUPS
from tfrfast.tensorflow.lifting.rules.node import BatchGraph, Node, Rule, Write
from tfrfast.tensorflow.lifting.rules.row_shapes import NotVectorisedError, Shapes
from tfrfast.tensorflow.lifting.rules.strings import STRINGS
from tfrfast.tensorflow.lifting.variable import ParsedPart, VariableRows

#: Ops that treat each value on its own, as other ops treat a row.
OF_EACH_VALUE: dict[str, Rule] = {
    **ELEMENTWISE,
    **STRINGS,
    **LOOKUPS,
}


class ShapesOfValues(Shapes):
    """The shapes of single values."""

    def __init__(self, parts: Mapping[str, ParsedPart]) -> None:
        super().__init__()
        self._parts = parts

    def known(self, tensor: Any) -> list[int]:
        part = self._parts.get(tensor.name)
        return super().known(tensor) if part is None else list(part.of_value)


def part_made(op: Any, per_row: tuple[bool, ...], parts: Mapping[str, ParsedPart]) -> ParsedPart:
    """Returns the part of the op's result. Refuses an op that does not treat each value alone."""
    given = {
        parts.get(each.name)
        for each, is_per_row in zip(op.inputs, per_row, strict=True)
        if is_per_row
    }
    (part,) = given if len(given) == 1 else (None,)
    others = [each for each, is_per_row in zip(op.inputs, per_row, strict=True) if not is_per_row]
    if (
        op.type not in OF_EACH_VALUE
        or part is None
        or part.kind != "values"
        or any(each.shape.rank != 0 for each in others)
    ):
        raise NotVectorisedError("takes rows of different lengths")
    return part


def of_each_value(node: Node, write: Write, part: ParsedPart) -> Write:
    """Returns a rule for rows of values, from the rule for values."""

    def write_rows(batch: BatchGraph, inputs: list[Any]) -> list[Any]:
        rows = next(each for each in inputs if isinstance(each, VariableRows))
        values = [each.values if isinstance(each, VariableRows) else each for each in inputs]
        inner = BatchGraph(batch.graph, lambda: tf.shape(rows.values)[0], batch.conditions)
        made = write(inner, values)
        for each in made:
            each.set_shape([None, *part.of_value])
        return [VariableRows(each, rows.splits) for each in made]

    return write_rows


def sparse_rows(op: Any, parts: Mapping[str, ParsedPart]) -> Write:
    """Makes a sparse tensor of each row, from its parsed parts or from other values."""
    indices, values, shape = (parts.get(each.name) for each in op.inputs)
    kinds = [None if part is None else part.kind for part in (indices, values, shape)]
    keys = {None if part is None else part.rows for part in (indices, values, shape)}
    if kinds != ["indices", "values", "shape"] or len(keys) > 1 or op.inputs[1].shape.rank != 1:
        raise NotVectorisedError("makes sparse tensors of different shapes")
    return lambda batch, inputs: [inputs[1].serialized()]


def ragged_rows(op: Any, parts: Mapping[str, ParsedPart]) -> Write:
    """Makes a ragged tensor of all rows, in the form of ragged_batch()."""
    part = parts.get(op.inputs[-1].name)
    if len(op.inputs) > 1 or part is None or part.kind != "values":
        raise NotVectorisedError("makes ragged tensors of different ranks")
    return lambda batch, inputs: batch.op(
        op.type,
        [inputs[0].splits, inputs[0].values],
        [tf.variant],
        like=op,
        RAGGED_RANK=1,
        Tsplits=tf.int64,
        batched_input=True,
    )


def shape_of_rows(op: Any, part: ParsedPart) -> Write:
    """Returns the number of values of each row."""
    dtype = op.outputs[0].dtype
    if part.kind != "values" or op.type == "Rank":
        raise NotVectorisedError("takes rows of different lengths")

    def write(batch: BatchGraph, inputs: list[Any]) -> list[Any]:
        splits = tf.cast(inputs[0].splits, dtype)
        lengths = splits[1:] - splits[:-1]
        if op.type == "Size":
            return [lengths * math.prod(part.of_value)]
        others = [tf.fill(tf.shape(lengths), tf.constant(size, dtype)) for size in part.of_value]
        return [tf.stack([lengths, *others], axis=1)]

    return write
