"""Ops on strings. Each string is treated on its own."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrfast.tensorflow.lifting.rules.node import BatchGraph, Node, Write
from tfrfast.tensorflow.lifting.rules.reductions import REDUCTIONS
from tfrfast.tensorflow.lifting.rules.row_shapes import NotVectorisedError


def _each(node: Node) -> Write:
    """The op itself. Its options, such as a pattern, are the same for all rows."""
    node.is_only_per_row(0)
    return lambda batch, inputs: batch.copy(node, inputs)


def _join(node: Node) -> Write:
    """Joins strings at the same places. A single string is joined to each other string."""
    shape = node.output_shape()
    shapes = [node.shape(number) for number in range(len(node.op.inputs))]

    def write(batch: BatchGraph, inputs: list[Any]) -> list[Any]:
        parts = []
        for each, own, per_row in zip(inputs, shapes, node.per_row, strict=True):
            if per_row and own != shape:
                each = batch.repeated(batch.widen(each, own, len(shape)), shape)
            elif own:
                each = each if per_row else batch.repeated(each, shape)
            parts.append(each)
        return batch.copy(node, parts)

    return write


def _substring(node: Node) -> Write:
    """A position outside the string is an error of its row."""
    if node.attr("unit") != b"BYTE":
        raise NotVectorisedError("counts characters, and a string may not be valid UTF-8")
    if node.output_shape() != node.shape(0):
        raise NotVectorisedError("takes several parts of a string")
    node.is_only_per_row(0)
    if node.constant(1, "a position").any():
        node.can_fail()

    def write(batch: BatchGraph, inputs: list[Any]) -> list[Any]:
        text, position, length = inputs
        if node.is_checked:
            sizes = tf.cast(tf.strings.length(text), position.dtype)
            fits = tf.logical_and(position <= sizes, position >= -sizes)
            batch.require(fits)
            position = tf.where(fits, position, tf.zeros_like(position))
            length = tf.broadcast_to(length, tf.shape(position))
        elif position.shape.rank:
            position = tf.broadcast_to(position, tf.shape(text))
            length = tf.broadcast_to(length, tf.shape(text))
        return batch.copy(node, [text, position, length])

    return write


#: Texts that any TensorFlow takes for numbers. TensorFlow decides about other and longer texts.
_FLOAT = r"[ \t]*([-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d{1,3})?|nan|-?inf)[ \t]*"
_NUMBERS = {
    tf.float32: _FLOAT,
    tf.float64: _FLOAT,
    tf.int32: r"[ \t]*-?\d{1,9}[ \t]*",
    tf.int64: r"[ \t]*-?\d{1,18}[ \t]*",
}
_LONGEST = 30


def _to_number(node: Node) -> Write:
    node.can_fail()
    numbers = _NUMBERS.get(node.op.outputs[0].dtype)
    if numbers is None:
        raise NotVectorisedError(f"makes {node.op.outputs[0].dtype.name}")

    def write(batch: BatchGraph, inputs: list[Any]) -> list[Any]:
        is_number = tf.strings.regex_full_match(inputs[0], numbers)
        fits = tf.logical_and(is_number, tf.strings.length(inputs[0]) <= _LONGEST)
        batch.require(fits)
        return batch.copy(node, [tf.where(fits, inputs[0], "0")])

    return write


STRINGS = {
    "AsString": _each,
    "EncodeBase64": _each,
    "ReduceJoin": REDUCTIONS["Max"],
    "RegexFullMatch": _each,
    "RegexReplace": _each,
    "StaticRegexFullMatch": _each,
    "StaticRegexReplace": _each,
    "StringJoin": _join,
    "StringLength": _each,
    "StringLower": _each,
    "StringStrip": _each,
    "StringToHashBucket": _each,
    "StringToHashBucketFast": _each,
    "StringToHashBucketStrong": _each,
    "StringToNumber": _to_number,
    "StringUpper": _each,
    "Substr": _substring,
}
