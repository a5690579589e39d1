"""Batches of maps whose parse has been taken out: decoded whole, or made record by record."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrfast.tensorflow.batches import Batches
from tfrfast.tensorflow.emission import emit_block, records
from tfrfast.tensorflow.functions import flat_map, map_as_traced
from tfrfast.tensorflow.lifting.lifted import Lifted


def lifted_batches(batches: Batches, size: int, lifted: Lifted) -> Any:
    """Batches, of `size` rows, of what the maps make of single records."""
    # Reading a batch that has to be full fails if a record is bad: nothing is left of it.
    if batches.rows is not None and not lifted.is_checked:
        return batches.finished(_sound(batches, lifted))
    return batches.finished(_checked(batches, size, lifted))


def _decoded(batches: Batches, batch: tuple[Any, ...], lifted: Lifted) -> tuple[list[Any], Any]:
    """The components of a batch of elements, and whether they count."""
    features, rows = lifted.features, batches.rows
    columns, good, error = batches.decode(features, *batch)
    parsed = features.assemble(features.shaped(columns, rows))
    components, holds = lifted.run(parsed, rows)
    is_good = tf.logical_and(tf.equal(tf.ensure_shape(error, []), ""), good > 0)
    return components, is_good if holds is None else tf.logical_and(is_good, holds)


def _sound(batches: Batches, lifted: Lifted) -> Any:
    def decode(*batch: Any) -> Any:
        components, _ = _decoded(batches, batch, lifted)
        return tf.nest.pack_sequence_as(lifted.specs[-1], components)

    return batches.mapped(decode)


def _checked(batches: Batches, size: int, lifted: Lifted) -> Any:
    """Where a batch does not count, TensorFlow makes it from records, by the original functions.

    So each error is TensorFlow's, and comes after the good batches before it.
    """

    def decode(*batch: Any) -> Any:
        flat, holds = _decoded(batches, batch, lifted)
        return (*flat, holds, *batch)

    def emit(*outputs: Any) -> Any:
        parts = len(tf.nest.flatten(lifted.specs[-1]))
        components, holds, batch = outputs[:parts], outputs[parts], outputs[parts + 1 :]

        def one_by_one() -> Any:
            elements = emit_block(*records(*batches.read(*batch))).unbatch()
            for function, spec in zip(lifted.functions, lifted.specs, strict=True):
                elements = map_as_traced(elements, function, spec)
            return elements.batch(size, batches.rows is not None)

        made = tf.nest.pack_sequence_as(lifted.specs[-1], components)
        return tf.cond(holds, lambda: tf.data.Dataset.from_tensors(made), one_by_one)

    return flat_map(batches.mapped(decode), emit)
