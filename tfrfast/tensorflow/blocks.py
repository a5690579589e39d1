"""The contents of a block that was read: records or addresses, and each error at its place."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrfast.tensorflow.functions import take_while
from tfrfast.tensorflow.library import ops


def records(head: Any, error: Any, tail: Any, *of_each: int) -> tuple[Any, Any, Any]:
    """Returns the outputs of a reading op with their shapes. `of_each` is the shape of a record."""
    for records in (head, tail):
        records.set_shape([None, *of_each])
    error.set_shape([])
    return head, error, tail


def emit_block(head: Any, error: Any, tail: Any) -> Any:
    """Returns the records of a block as one element. An error follows the records before the
    damage.
    """
    is_sound = tf.logical_and(tf.equal(error, ""), tf.size(head) > 0)
    return tf.cond(
        is_sound,
        lambda: tf.data.Dataset.from_tensors(head),
        lambda: in_parts(head, error, tail),
    )


def in_parts(head: Any, error: Any, tail: Any) -> Any:
    """Returns a dataset of the records before the first error, the error, and other records."""
    return some(head).concatenate(failure(error, tail)).concatenate(some(tail))


def some(records: Any) -> Any:
    """Returns a dataset of one element, or of none without records."""
    return tf.data.Dataset.from_tensors(records).take(tf.sign(tf.size(records, tf.int64)))


def failure(error: Any, records: Any) -> Any:
    """Returns a dataset without elements, which raises `error` unless empty. `records` fix the
    type.
    """
    is_error = tf.cast(tf.sign(tf.strings.length(error)), tf.int64)
    return raising(tf.data.Dataset.from_tensors(records).take(is_error), error)


def raising(dataset: Any, error: Any) -> Any:
    """Raises `error` in place of the elements of `dataset`.

    TensorFlow puts no words before an error of take_while(). An error of map() or filter() would
    begin with the path of the iterator.
    """
    return take_while(dataset, _fails, error)


def _fails(*element_and_error: Any) -> Any:
    # Needs an element that never comes, because a mere control dependency is optimised away.
    never = ops.tfrfast_raise(element_and_error[-1])
    never.set_shape([None])
    return tf.size(never) > 0
