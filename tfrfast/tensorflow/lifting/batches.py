"""Batches of maps whose parse has been taken out: decoded whole, or made record by record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow.batches import Batches
from tfrfast.tensorflow.emission import element_of, emit_block, records
from tfrfast.tensorflow.functions import (
    flat_map,
    map_as_traced,
    parallel_reads,
    serial_map,
    with_spec,
)
from tfrfast.tensorflow.lifting.lifted import Lifted

_BYTES_AT_ONCE = 256 << 20


def lifted_batches(batches: Batches, size: int, lifted: Lifted, symbolic: bool) -> Any:
    """Batches, of `size` rows, of what the maps make of single records.

    With `symbolic`, checkpoints hold positions alone.
    """
    # Reading a batch that has to be full fails if a record is bad: nothing is left of it.
    calls = batches_at_once(size * lifted.row_bytes)
    if batches.rows is not None and not lifted.is_checked:
        return batches.finished(_sound(batches, lifted, calls))
    return batches.finished(_checked(batches, size, lifted, calls, symbolic))


def batches_at_once(batch_bytes: int) -> int:
    """How many batches are made at once: large ones take memory, but two keep everyone busy.

    Each is made in one piece. Pieces of 16 MiB that are put together afterwards take up to twice
    the time and, unless a function makes many large values one after the other, more memory.
    """
    return max(2, min(parallel_reads(), _BYTES_AT_ONCE // max(1, batch_bytes)))


def _decoded(batches: Batches, batch: tuple[Any, ...], lifted: Lifted) -> tuple[list[Any], Any]:
    """The components of a batch of elements, and whether they count."""
    features, rows = lifted.features, batches.rows
    columns, good, error = batches.decode(features, *batch)
    parsed = features.assemble(features.shaped(columns, rows))
    components, holds = lifted.run(parsed, rows)
    is_good = tf.logical_and(tf.equal(tf.ensure_shape(error, []), ""), good > 0)
    return components, is_good if holds is None else tf.logical_and(is_good, holds)


def _sound(batches: Batches, lifted: Lifted, calls: int) -> Any:
    def decode(*batch: Any) -> Any:
        return tuple(_decoded(batches, batch, lifted)[0])

    return with_spec(batches.mapped(decode, calls=calls), lifted.batch_spec(batches.rows))


def _checked(batches: Batches, size: int, lifted: Lifted, calls: int, symbolic: bool) -> Any:
    """Where a batch does not count, TensorFlow makes it from records, by the original functions.

    So each error is TensorFlow's, and comes after the good batches before it.
    """

    def decode(*batch: Any) -> Any:
        flat, holds = _decoded(batches, batch, lifted)
        return (*flat, holds, *batch)

    spec = lifted.batch_spec(batches.rows)
    specs = tf.nest.flatten(spec)

    def emit(*outputs: Any) -> Any:
        parts = len(specs)
        components, holds, batch = outputs[:parts], outputs[parts], outputs[parts + 1 :]

        def one_by_one() -> Any:
            elements = emit_block(*records(*batches.read(*batch))).unbatch()
            for function, made in zip(lifted.functions, lifted.specs, strict=True):
                elements = map_as_traced(elements, function, made)
            elements = elements.batch(size, batches.rows is not None)
            return tf.data.experimental.from_variant(elements._variant_tensor, spec)

        def decoded() -> Any:
            shaped = [
                tf.ensure_shape(each, own.shape) if isinstance(own, tf.TensorSpec) else each
                for each, own in zip(components, specs, strict=True)
            ]
            return element_of(shaped, spec)

        return tf.cond(holds, decoded, one_by_one)

    def decode_or_not(*batch: Any) -> Any:
        return _or_nothing(decode, batch, specs)

    if not lifted.raises:
        made = batches.mapped(decode, calls=calls)
    elif symbolic:  # TensorFlow has no symbolic checkpoints of ignore_errors() in an iteration,
        made = batches.mapped(
            lambda *batch: decode_or_not(*batch).get_single_element(),
            calls=calls,
            on_one_thread=False,
        )
    else:  # and no others of get_single_element().
        made = batches.mapped_each(decode_or_not, calls=calls)
    return flat_map(made, emit)


def _or_nothing(decode: Callable[..., Any], batch: tuple[Any, ...], specs: list[Any]) -> Any:
    """A dataset of what is made of a batch or, if that fails, of one that does not count."""
    made = serial_map(tf.data.Dataset.from_tensors(batch), decode, on_one_thread=False)
    components = made.element_spec[: len(specs)]
    nothing = (*map(_nothing_like, components), tf.constant(False), *batch)
    return made.ignore_errors().concatenate(tf.data.Dataset.from_tensors(nothing)).take(1)


def _nothing_like(spec: Any) -> Any:
    """A tensor that nobody looks at."""
    if spec.dtype != tf.variant:
        return tf.zeros([0] * spec.shape.rank, spec.dtype)
    serialized = tf.raw_ops.SerializeSparse(
        sparse_indices=tf.zeros([0, 1], tf.int64),
        sparse_values=tf.zeros([0]),
        sparse_shape=tf.zeros([1], tf.int64),
        out_type=tf.variant,
    )
    return tf.reshape(serialized, [1, 3] if spec.shape.rank == 2 else [3])
