"""What was read becomes elements: good records, errors at their place, a length that is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow.functions import as_it_stands, show_a_reader
from tfrfast.tensorflow.library import ops


def records(head: Any, error: Any, tail: Any) -> Any:
    """What the reading ops give."""
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

    @as_it_stands
    def fails(*_: Any) -> Any:
        # Needs what never comes: a mere control dependency is optimised away.
        return tf.size(tf.ensure_shape(ops.tfrfast_raise(error), [None])) > 0

    return dataset.take_while(fails)


def _failure(error: Any) -> Any:
    """Raises `error` if it is one, and has no elements."""
    is_error = tf.cast(tf.strings.length(error) > 0, tf.int64)
    nothing = tf.data.Dataset.from_tensors(tf.zeros([0], tf.string))
    return _raising(nothing.take(is_error), error)


@as_it_stands
def emit_block(head: Any, error: Any, tail: Any) -> Any:
    """Damage waits here for its turn: what lies before it is out when it is raised."""
    return tf.cond(
        tf.logical_and(tf.equal(error, ""), tf.size(head) > 0),
        lambda: tf.data.Dataset.from_tensors(head),
        lambda: _some(head).concatenate(_failure(error)).concatenate(_some(tail)),
    )


@as_it_stands
def emit_batch(head: Any, error: Any, tail: Any) -> Any:
    """A batch that is hit fails, as TensorFlow's does; whoever ignores that gets its good records.

    In this order no batch lies behind the last one that was promised.
    """
    return tf.cond(
        tf.logical_and(tf.equal(error, ""), tf.size(head) > 0),
        lambda: tf.data.Dataset.from_tensors(head),
        lambda: _failure(error).concatenate(_some(tf.concat([head, tail], axis=0))),
    )


def emit_columns(assemble: Callable[[Any], Any]) -> Callable[..., Any]:
    """As emit_batch, of columns that `assemble` makes the features of."""

    @as_it_stands
    def emit(columns: Any, rows: Any, error: Any) -> Any:
        batch = tf.data.Dataset.from_tensors(assemble(columns))
        return tf.cond(
            tf.equal(error, ""),
            lambda: batch,
            lambda: _raising(batch, error).concatenate(batch.take(tf.minimum(rows, 1))),
        )

    return emit


def with_length(dataset: Any, length: int | None) -> Any:
    """Declares how many elements there are (None: endless), without insisting.

    `assert_cardinality` would fail at the end, again and again, where damaged records were
    ignored. What is appended here declares itself endless, but is empty.
    """
    spec = dataset.element_spec

    @as_it_stands
    def like_it(_: Any) -> Any:
        show_a_reader()  # sharding by file is not to fail here
        nothing = tf.nest.map_structure(_nothing_like, spec, expand_composites=True)
        return tf.data.Dataset.from_tensors(nothing)

    # What is left of something endless is endless, they say.
    nothing = tf.data.Dataset.range(1).flat_map(like_it).repeat().skip(-1)
    declared = dataset.concatenate(nothing)
    return declared if length is None else declared.take(length)


def _nothing_like(spec: Any) -> Any:
    """A tensor of that type and of any shape that `spec` allows. Nobody sees it."""
    sizes = [] if spec.shape.rank is None else [size or 0 for size in spec.shape]
    tensor = tf.zeros(sizes, spec.dtype)
    return tf.ensure_shape(tf.raw_ops.PlaceholderWithDefault(input=tensor, shape=None), spec.shape)
