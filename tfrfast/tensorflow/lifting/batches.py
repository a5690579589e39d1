"""Planned batches that are decoded at once, for maps whose parse has been taken out."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrfast.tensorflow import graphs
from tfrfast.tensorflow.emission import emit_block, records, with_length
from tfrfast.tensorflow.functions import flat_map, map_as_traced
from tfrfast.tensorflow.library import ops
from tfrfast.tensorflow.lifting.lifted import Lifted
from tfrfast.tensorflow.planning import OpenPlan
from tfrfast.tensorflow.sequence import Batch, Sequence


def lifted_batches(plan: OpenPlan, sequence: Sequence, lifted: Lifted) -> Any:
    """Batches of what the maps make of single records."""
    assert sequence.batch is not None
    full = sequence.batch.drop_remainder
    # Reading a batch that has to be full fails if a record is bad: nothing is left of it.
    batches = _sound if full and not lifted.is_checked else _checked
    elements = with_length(batches(plan, sequence.batch, sequence, lifted), sequence.length)
    return elements.with_options(graphs.small_checkpoints()) if sequence.shuffle else elements


def _decoded(step: tuple[Any, ...], lifted: Lifted, batch: Batch) -> tuple[list[Any], Any]:
    """The components of a batch of elements, and whether they hold."""
    features, rows = lifted.features, batch.rows if batch.drop_remainder else None
    columns, _, error = ops.tfrfast_decode_batch_v2(
        *step, features.text, column_types=features.column_types
    )
    parsed = features.assemble(features.shaped(columns, rows))
    components, holds = lifted.run(parsed, rows)
    is_good = tf.equal(tf.ensure_shape(error, []), "")
    return components, is_good if holds is None else tf.logical_and(is_good, holds)


def _sound(plan: OpenPlan, batch: Batch, sequence: Sequence, lifted: Lifted) -> Any:
    def decode(*step: Any) -> Any:
        components, _ = _decoded(step, lifted, batch)
        return tf.nest.pack_sequence_as(lifted.specs[-1], components)

    return graphs.map_steps(plan, sequence, decode)


def _checked(plan: OpenPlan, batch: Batch, sequence: Sequence, lifted: Lifted) -> Any:
    """Where a batch does not hold, TensorFlow makes it of its records, by the original functions.

    So each error is TensorFlow's, and has the good batches before it.
    """
    source, encoded = tf.constant(plan.source), tf.constant(sequence.encode())

    def decode(*step: Any) -> Any:
        flat, holds = _decoded(step, lifted, batch)
        return (*flat, holds, *step[2:])

    def emit(*outputs: Any) -> Any:
        *components, holds, files, key, number = outputs

        def one_by_one() -> Any:
            read = records(*ops.tfrfast_read_batch_v2(source, encoded, files, key, number))
            elements = emit_block(*read).unbatch()
            for function, spec in zip(lifted.functions, lifted.specs, strict=True):
                elements = map_as_traced(elements, function, spec)
            return elements.batch(batch.rows, batch.drop_remainder)

        made = tf.nest.pack_sequence_as(lifted.specs[-1], components)
        return tf.cond(holds, lambda: tf.data.Dataset.from_tensors(made), one_by_one)

    return flat_map(graphs.map_steps(plan, sequence, decode), emit)
