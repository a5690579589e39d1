"""Single elements of blocks, also where their tensors have different shapes."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrfast.tensorflow.build.functions import serial_map, with_spec
from tfrfast.tensorflow.lift.variable import unpacked


def elements_of(blocks: Any, spec: Any) -> Any:
    """Returns the elements, like `spec`, of blocks of their maps' results."""
    elements = blocks.unbatch()
    specs = tf.nest.flatten(spec)
    if elements.element_spec == spec and not any(map(_is_sparse, specs)):
        return elements

    def as_elements(*parts: Any) -> tuple[Any, ...]:
        return tuple(map(_as_element, parts, specs))

    return with_spec(serial_map(elements, as_elements), spec)


def _as_element(part: Any, spec: Any) -> Any:
    """Returns a component of an element in tf.data's form."""
    if _is_sparse(spec):  # the tensor states the length of the block's longest row
        indices, values, _ = tf.raw_ops.DeserializeSparse(serialized_sparse=part, dtype=spec.dtype)
        return tf.raw_ops.SerializeSparse(
            sparse_indices=indices,
            sparse_values=values,
            sparse_shape=tf.shape(values, tf.int64),
            out_type=tf.variant,
        )
    if isinstance(spec, tf.TensorSpec) and part.dtype != spec.dtype:
        values = unpacked(part, spec.dtype)
        values.set_shape(spec.shape)  # concatenate() compares the shapes
        return values
    return part


def _is_sparse(spec: Any) -> bool:
    return isinstance(spec, tf.SparseTensorSpec)
