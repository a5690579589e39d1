"""Strings that hold arrays, if later ops fix the number of values in each."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrfast.tensorflow.lifting.rules.node import BatchGraph, Node, Write
from tfrfast.tensorflow.lifting.rules.row_shapes import NotVectorisedError

#: Types that TensorFlow decodes from strings of a given length.
_TYPES = (
    *(tf.float32, tf.float64),
    *(tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8, tf.uint16),
)


def _decode_raw(node: Node) -> Write:
    """A string of another length fails, or gives values of another shape."""
    node.can_fail()
    dtype = node.op.outputs[0].dtype
    if dtype not in _TYPES:
        raise NotVectorisedError(f"makes {dtype.name}")
    shape = node.output_shape()
    size = int(shape[-1]) * dtype.size

    def write(batch: BatchGraph, inputs: list[Any]) -> list[Any]:
        (text,) = inputs
        batch.require(tf.equal(tf.strings.length(text), size))
        if not size:
            return [tf.zeros(tf.concat([tf.shape(text), [0]], 0), dtype)]
        little = node.attr("little_endian")
        length = tf.constant(size)
        return batch.op(
            "DecodePaddedRaw", [text, length], [dtype], out_type=dtype, little_endian=little
        )

    return write


DECODING = {"DecodeRaw": _decode_raw}
