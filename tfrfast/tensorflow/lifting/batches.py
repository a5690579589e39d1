"""Batches of maps whose parse has been taken out: decoded whole, or made record by record."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrfast.tensorflow.batches import Batches
from tfrfast.tensorflow.emission import emit_block, records
from tfrfast.tensorflow.functions import flat_map, map_as_traced, parallel_reads, serial_map
from tfrfast.tensorflow.lifting.lifted import Lifted

_BYTES_AT_ONCE = 256 << 20


def lifted_batches(batches: Batches, size: int, lifted: Lifted) -> Any:
    """Batches, of `size` rows, of what the maps make of single records."""
    # Reading a batch that has to be full fails if a record is bad: nothing is left of it.
    if batches.rows is not None and not lifted.is_checked:
        return batches.finished(_sound(batches, lifted, _calls(size, lifted)))
    return batches.finished(_checked(batches, size, lifted, _calls(size, lifted)))


def _calls(size: int, lifted: Lifted) -> int:
    """How many batches are made at once: large ones take memory, but two keep everyone busy."""
    return max(2, min(parallel_reads(), _BYTES_AT_ONCE // max(1, size * lifted.row_bytes)))


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
        components, _ = _decoded(batches, batch, lifted)
        return tf.nest.pack_sequence_as(lifted.specs[-1], components)

    return batches.mapped(decode, calls=calls)


def _checked(batches: Batches, size: int, lifted: Lifted, calls: int) -> Any:
    """Where a batch does not count, TensorFlow makes it from records, by the original functions.

    So each error is TensorFlow's, and comes after the good batches before it.
    """

    def decode(*batch: Any) -> Any:
        if lifted.raises:
            return (*_decoded_or_not(batches, batch, lifted), *batch)
        flat, holds = _decoded(batches, batch, lifted)
        return (*flat, holds, *batch)

    specs = tf.nest.flatten(lifted.batch_spec(batches.rows))

    def emit(*outputs: Any) -> Any:
        parts = len(specs)
        components, holds, batch = outputs[:parts], outputs[parts], outputs[parts + 1 :]

        def one_by_one() -> Any:
            elements = emit_block(*records(*batches.read(*batch))).unbatch()
            for function, spec in zip(lifted.functions, lifted.specs, strict=True):
                elements = map_as_traced(elements, function, spec)
            return elements.batch(size, batches.rows is not None)

        def decoded() -> Any:
            shaped = [
                tf.ensure_shape(each, spec.shape)
                for each, spec in zip(components, specs, strict=True)
            ]
            return tf.data.Dataset.from_tensors(tf.nest.pack_sequence_as(lifted.specs[-1], shaped))

        return tf.cond(holds, decoded, one_by_one)

    made = batches.mapped(decode, calls=calls, on_one_thread=not lifted.raises)
    return flat_map(made, emit)


def _decoded_or_not(batches: Batches, batch: tuple[Any, ...], lifted: Lifted) -> tuple[Any, ...]:
    """The same. If a row fails, an empty batch that does not count."""

    def decode(*batch: Any) -> Any:
        components, holds = _decoded(batches, batch, lifted)
        return (*components, holds)

    decoded = serial_map(tf.data.Dataset.from_tensors(batch), decode, on_one_thread=False)
    specs = decoded.element_spec[:-1]
    nothing = (*(tf.zeros([0] * spec.shape.rank, spec.dtype) for spec in specs), tf.constant(False))
    either = decoded.ignore_errors().concatenate(tf.data.Dataset.from_tensors(nothing))
    return tuple(either.take(1).get_single_element())
