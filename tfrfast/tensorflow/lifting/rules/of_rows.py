"""Ops that take or make all values of a row, with any number of values in each row."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from tfrfast.tensorflow.lifting.rules.node import BatchGraph, Node, Write
from tfrfast.tensorflow.lifting.rules.row_shapes import NotVectorisedError
from tfrfast.tensorflow.lifting.variable import ParsedPart

Parts = Mapping[str, ParsedPart]
#: Returns the writer of the op, and the part that its output is: None if all rows have one shape.
OfRows = Callable[[Node, Parts], tuple[Write, ParsedPart | None]]


def _values_of(node: Node, parts: Parts) -> ParsedPart:
    """Returns the part of the first input. Refuses the op if other inputs differ by row."""
    node.is_only_per_row(0)
    part = parts.get(node.op.inputs[0].name)
    if part is None or part.kind != "values":
        raise NotVectorisedError("takes rows of different lengths")
    return part


def _dense(node: Node, parts: Parts) -> tuple[Write, ParsedPart | None]:
    """tf.sparse.to_dense: a row of a sparse feature has all its values, one after the other."""
    given = [parts.get(each.name) for each in node.op.inputs[:3]]
    kinds = [None if part is None else part.kind for part in given]
    keys = {None if part is None else part.rows for part in given}
    if kinds != ["indices", "shape", "values"] or len(keys) > 1:
        raise NotVectorisedError("takes sparse tensors of different shapes")
    return lambda batch, inputs: [inputs[2]], given[2]


def _reshape(node: Node, parts: Parts) -> tuple[Write, ParsedPart | None]:
    """Gives all rows one shape. A row with another number of values is an error."""
    part = _values_of(node, parts)
    shape = node.output_shape()
    count, rest = divmod(math.prod(shape), math.prod(part.of_value) or 1)
    if rest or 0 in part.of_value:
        raise NotVectorisedError("changes how many values a row has")
    node.can_fail()

    def write(batch: BatchGraph, inputs: list[Any]) -> list[Any]:
        tensor, is_right = inputs[0].of_length(count)
        batch.require(is_right)
        return [batch.reshape(tensor, shape)]

    return write, None


def _slice(node: Node, parts: Parts) -> tuple[Write, ParsedPart | None]:
    """Takes consecutive values of each row."""
    part = _values_of(node, parts)
    begin, end, step = (node.constant(number, "bounds") for number in (1, 2, 3))
    masks = ("ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
    if begin.shape != (1,) or int(step[0]) != 1 or any(map(node.attr, masks)):
        raise NotVectorisedError("takes rows of different lengths")
    first = 0 if node.attr("begin_mask") else int(begin[0])
    last = None if node.attr("end_mask") else int(end[0])
    made = ParsedPart(part.key, "values", part.of_value, node.op.name)
    return lambda batch, inputs: [inputs[0].between(first, last)], made


#: Ops on rows of different lengths that do not treat each value on its own.
OF_ROWS: dict[str, OfRows] = {
    "Reshape": _reshape,
    "SparseToDense": _dense,
    "StridedSlice": _slice,
}
