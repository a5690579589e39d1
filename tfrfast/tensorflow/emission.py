"""Turns what was read into elements: good records, and each error at its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow.functions import flat_map, show_a_reader, take_while
from tfrfast.tensorflow.library import ops


def records(head: Any, error: Any, tail: Any) -> Any:
    """The outputs of a reading op, with their ranks."""
    return (
        tf.ensure_shape(head, [None]),
        tf.ensure_shape(error, []),
        tf.ensure_shape(tail, [None]),
    )


def _some(records: Any) -> Any:
    return tf.data.Dataset.from_tensors(records).take(tf.cast(tf.size(records) > 0, tf.int64))


def _raising(dataset: Any, error: Any) -> Any:
    """Raises `error` in place of the elements of `dataset`.

    TensorFlow puts no words of its own before an error that take_while meets: from map or filter it
    would begin with the path of the iterator.
    """
    return take_while(dataset, _fails, error)


def _fails(*element_and_error: Any) -> Any:
    # Needs what never comes: a mere control dependency is optimised away.
    return tf.size(tf.ensure_shape(ops.tfrfast_raise(element_and_error[-1]), [None])) > 0


def _failure(error: Any, records: Any) -> Any:
    """A dataset without elements, which raises `error` unless it is empty. `records` show a type."""
    is_error = tf.cast(tf.strings.length(error) > 0, tf.int64)
    return _raising(tf.data.Dataset.from_tensors(records).take(is_error), error)


def emit_block(head: Any, error: Any, tail: Any) -> Any:
    """The records, or addresses, of a block. An error comes after those before the damage."""
    return tf.cond(
        tf.logical_and(tf.equal(error, ""), tf.size(head) > 0),
        lambda: tf.data.Dataset.from_tensors(head),
        lambda: _some(head).concatenate(_failure(error, tail)).concatenate(_some(tail)),
    )


def emit_batch(head: Any, error: Any, tail: Any) -> Any:
    """A batch. If some of its records are damaged, the error comes first, then the good records.

    So a damaged batch fails, as TensorFlow's does, and ignore_errors() still gives its good records.
    """
    return tf.cond(
        tf.logical_and(tf.equal(error, ""), tf.size(head) > 0),
        lambda: tf.data.Dataset.from_tensors(head),
        lambda: _failure(error, tail).concatenate(_some(tf.concat([head, tail], axis=0))),
    )


def emit_columns(assemble: Callable[[Any], Any]) -> Callable[..., Any]:
    """The same as emit_batch for columns, of which `assemble` makes the features."""

    def emit(*outputs: Any) -> Any:
        *columns, rows, error = outputs
        batch = tf.data.Dataset.from_tensors(assemble(columns))
        return tf.cond(
            tf.equal(error, ""),
            lambda: batch.take(tf.minimum(rows, 1)),
            lambda: _raising(batch, error).concatenate(batch.take(tf.minimum(rows, 1))),
        )

    return emit


def with_length(dataset: Any, length: int | None) -> Any:
    """Declares how many elements there are (None: no end), but accepts fewer.

    `assert_cardinality` would fail at the end, each time again, where damaged records were ignored.
    What is appended here claims to have no end, and is empty.
    """
    spec = dataset.element_spec

    def like_it(_: Any) -> Any:
        show_a_reader()  # else sharding by file would fail here
        nothing = tf.nest.map_structure(_nothing_like, spec, expand_composites=True)
        return tf.data.Dataset.from_tensors(nothing)

    # TensorFlow says that the rest of something endless is endless.
    nothing = flat_map(tf.data.Dataset.range(1), like_it).repeat().skip(-1)
    declared = dataset.concatenate(nothing)
    return declared if length is None else declared.take(length)


def _nothing_like(spec: Any) -> Any:
    """A tensor of that type, and of some shape that `spec` allows. Nobody sees it."""
    sizes = [] if spec.shape.rank is None else [size or 0 for size in spec.shape]
    tensor = tf.zeros(sizes, spec.dtype)
    return tf.ensure_shape(tf.raw_ops.PlaceholderWithDefault(input=tensor, shape=None), spec.shape)
