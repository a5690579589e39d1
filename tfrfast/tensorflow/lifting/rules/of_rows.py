"""Ops that take or make all values of a row, with any number of values in each row."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow.lifting.rules.node import BatchGraph, Node, Write
from tfrfast.tensorflow.lifting.rules.row_shapes import NotVectorisedError
from tfrfast.tensorflow.lifting.variable import ParsedPart, VariableRows

Parts = Mapping[str, ParsedPart]
#: Returns the writer of the op, and the part that its output is: None if all rows have one shape.
OfRows = Callable[[Node, Parts], tuple[Write, ParsedPart | None]]


def values_of(node: Node, parts: Parts) -> ParsedPart:
    """Returns the part of the first input. Refuses the op if other inputs differ by row."""
    node.is_only_per_row(0)
    part = parts.get(node.op.inputs[0].name)
    if part is None or part.kind != "values":
        raise NotVectorisedError("takes rows of different lengths")
    return part


def fixed(write: Write, output: Any) -> Write:
    """Makes one tensor of all rows, and requires that they have the same shape."""
    count, *of_value = output.shape.as_list()

    def write_fixed(batch: BatchGraph, inputs: list[Any]) -> list[Any]:
        (rows,) = write(batch, inputs)
        tensor, is_right = rows.of_length(count, of_value)
        batch.require(is_right)
        return [tensor]

    return write_fixed


def _dense(node: Node, parts: Parts) -> tuple[Write, ParsedPart | None]:
    """tf.sparse.to_dense: a row of a sparse feature has all its values, one after the other."""
    given = [parts.get(each.name) for each in node.op.inputs[:3]]
    kinds = [None if part is None else part.kind for part in given]
    keys = {None if part is None else part.rows for part in given}
    if kinds != ["indices", "shape", "values"] or len(keys) > 1:
        raise NotVectorisedError("takes sparse tensors of different shapes")
    return lambda batch, inputs: [inputs[2]], given[2]


def _reshape(node: Node, parts: Parts) -> tuple[Write, ParsedPart | None]:
    part = values_of(node, parts)
    shape = node.constant(1, "a shape").tolist()
    if not shape:
        raise NotVectorisedError("takes rows of different lengths")
    before, after = math.prod(part.of_value), math.prod(shape[1:])
    if -1 in shape[1:] or not before or not after:
        raise NotVectorisedError("changes how many values a row has")
    made = ParsedPart(part.key, "values", tuple(shape[1:]), node.op.name)
    if before % after:
        node.can_fail()

    def write(batch: BatchGraph, inputs: list[Any]) -> list[Any]:
        rows, _ = inputs
        if before % after:
            batch.require(tf.equal(rows.splits * before % after, 0), per_row=False)
        splits = rows.splits * before // after
        whole = tf.reshape(rows.values, [-1])[: splits[-1] * after]
        return [VariableRows(tf.reshape(whole, [-1, *shape[1:]]), splits)]

    if shape[0] == -1:
        return write, made
    node.can_fail()
    return fixed(write, node.op.outputs[0]), None


def _same(node: Node, parts: Parts) -> tuple[Write, ParsedPart | None]:
    """tf.ensure_shape. The caller handles a fixed length."""
    part = values_of(node, parts)
    if node.op.outputs[0].shape[1:] != part.of_value:
        raise NotVectorisedError("has a shape that is known only when it runs")
    return lambda batch, inputs: [inputs[0]], part


def _slice(node: Node, parts: Parts) -> tuple[Write, ParsedPart | None]:
    """Takes one value of each row, or consecutive values."""
    part = values_of(node, parts)
    begin, end, step = (node.constant(number, "bounds") for number in (1, 2, 3))
    has_others = any(node.attr(name) for name in ("ellipsis_mask", "new_axis_mask"))
    if begin.shape != (1,) or int(step[0]) != 1 or has_others:
        raise NotVectorisedError("takes rows of different lengths")
    first = 0 if node.attr("begin_mask") else int(begin[0])
    last = None if node.attr("end_mask") else int(end[0])
    if node.attr("shrink_axis_mask"):
        node.can_fail()
        return _pick(int(begin[0])), None
    made = ParsedPart(part.key, "values", part.of_value, node.op.name)
    return lambda batch, inputs: [inputs[0].between(first, last)], made


def _pick(place: int) -> Write:
    def write(batch: BatchGraph, inputs: list[Any]) -> list[Any]:
        picked, is_there = inputs[0].at(place)
        batch.require(is_there)
        return [picked]

    return write


def _one_hot(node: Node, parts: Parts) -> tuple[Write, ParsedPart | None]:
    part = values_of(node, parts)
    if node.attr("axis") != -1:
        raise NotVectorisedError("takes rows of different lengths")
    depth = int(node.constant(1, "a depth"))

    def write(batch: BatchGraph, inputs: list[Any]) -> list[Any]:
        rows, *others = inputs
        return [VariableRows(batch.copy(node, [rows.values, *others])[0], rows.splits)]

    return write, ParsedPart(part.key, "values", (*part.of_value, depth), part.changed_by)


#: With more padding in a row, the batch runs row by row: the sum over a batch may be too large.
_MAX_PADDING = 1 << 24


def _pad(node: Node, parts: Parts) -> tuple[Write, ParsedPart | None]:
    """Adds values before and after each row. Their number may differ from row to row."""
    part = parts.get(node.op.inputs[0].name)
    if part is None or part.kind != "values" or part.of_value or any(node.per_row[2:]):
        raise NotVectorisedError("takes rows of different lengths")
    node.can_fail()

    def write(batch: BatchGraph, inputs: list[Any]) -> list[Any]:
        rows, paddings, *others = inputs
        if not node.per_row[1]:
            paddings = batch.repeated(paddings, [1, 2])
        paddings = tf.reshape(tf.cast(paddings, tf.int64), [-1, 2])
        fits = tf.logical_and(paddings >= 0, paddings <= _MAX_PADDING)
        batch.require(fits)
        filling = others[0] if others else tf.zeros([], rows.values.dtype)
        return [rows.with_more(tf.where(fits, paddings, tf.zeros_like(paddings)), filling)]

    return write, ParsedPart(part.key, "values", (), node.op.name)


_SEGMENTS = {
    "Max": "UnsortedSegmentMax",
    "Min": "UnsortedSegmentMin",
    "Prod": "UnsortedSegmentProd",
    "Sum": "UnsortedSegmentSum",
}


def _reduce(node: Node, parts: Parts) -> tuple[Write, ParsedPart | None]:
    """Reduces the values of each row. Refuses floats, which would be added in another order."""
    part = values_of(node, parts)
    axes = node.constant(1, "axes").reshape(-1).tolist()
    kind, dtype = node.op.type, node.dtype()
    if axes not in ([0], [-1 - len(part.of_value)]) or node.attr("keep_dims"):
        raise NotVectorisedError("takes rows of different lengths")
    if not dtype.is_integer:
        raise NotVectorisedError("takes rows of different lengths")

    def write(batch: BatchGraph, inputs: list[Any]) -> list[Any]:
        rows = inputs[0]
        count = tf.cast(rows.row_count, tf.int32)
        op = getattr(tf.raw_ops, _SEGMENTS[kind])
        return [op(data=rows.values, segment_ids=rows.row_numbers, num_segments=count)]

    return write, None


def _join(node: Node, parts: Parts) -> tuple[Write, ParsedPart | None]:
    """tf.strings.reduce_join."""
    part = values_of(node, parts)
    axes = node.constant(1, "axes").reshape(-1).tolist()
    if part.of_value or node.attr("keep_dims") or axes not in ([0], [-1]):
        raise NotVectorisedError("takes rows of different lengths")

    def write(batch: BatchGraph, inputs: list[Any]) -> list[Any]:
        rows, separator = inputs[0], node.attr("separator")
        texts = rows.values
        if separator:  # UnsortedSegmentJoin leaves out the separator after empty strings
            begins = tf.gather(rows.splits, rows.row_numbers)
            is_first = tf.equal(tf.range(rows.splits[-1]), begins)
            texts = tf.where(is_first, texts, tf.strings.join([separator, texts]))
        count = tf.cast(rows.row_count, tf.int32)
        return [
            tf.raw_ops.UnsortedSegmentJoin(
                inputs=texts, segment_ids=rows.row_numbers, num_segments=count
            )
        ]

    return write, None


#: Ops on rows of different lengths that do not treat each value on its own.
OF_ROWS: dict[str, OfRows] = {
    "EnsureShape": _same,
    "Max": _reduce,
    "Min": _reduce,
    "OneHot": _one_hot,
    "Pad": _pad,
    "PadV2": _pad,
    "Prod": _reduce,
    "ReduceJoin": _join,
    "Reshape": _reshape,
    "SparseToDense": _dense,
    "StridedSlice": _slice,
    "Sum": _reduce,
}
