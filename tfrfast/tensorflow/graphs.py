"""Shuffled records in tf.data: steps, and the op that reads a step."""

from __future__ import annotations

import dataclasses
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow.batches import Batches, group_of
from tfrfast.tensorflow.blocks import emit_block, records
from tfrfast.tensorflow.columns import TensorFeatures
from tfrfast.tensorflow.emission import with_length
from tfrfast.tensorflow.functions import flat_map, unbatched
from tfrfast.tensorflow.iteration_keys import IterationKeys, as_int64
from tfrfast.tensorflow.library import ops
from tfrfast.tensorflow.making import made_once
from tfrfast.tensorflow.planning import OpenPlan
from tfrfast.tensorflow.saving import with_positions
from tfrfast.tensorflow.sequence import Batched, Sequence
from tfrfast.tensorflow.steps import piece_size, pieces_of_steps, steps

# The approximate bytes of a block of shuffled records, and its largest number of records.
_BLOCK_BYTES = 1 << 20
_MAX_BLOCK_RECORDS = 4096


class PlannedBatches(Batches):
    """The batches of a shuffle, identified by an order's key, the files, and some steps.

    Reading needs the source and the sequence.
    """

    def count(self, *group: Any) -> Any:
        return group[0][4] - group[0][3]

    def member(self, number: int, *group: Any) -> tuple[Any, ...]:
        return (*group, tf.constant(number, tf.int64))

    def read(self, *batch: Any) -> tuple[Any, Any, Any]:
        return ops.tfrfast_read_batch(*self._tensors, *batch, self._fails)

    def decode(self, features: TensorFeatures, *batch: Any) -> tuple[Any, Any, Any]:
        return ops.tfrfast_decode_batch(
            *self._tensors,
            *batch,
            self._fails,
            features.text,
            column_types=features.column_types,
        )


def planned_batches(
    plan: OpenPlan,
    sequence: Sequence,
    *,
    grouped: bool = False,
    symbolic: bool = True,
    counted: bool = True,
) -> PlannedBatches:
    """Returns the batches of a shuffle.

    With `symbolic`, checkpoints hold positions alone. Unless `counted`, there may be more elements
    than batches.
    """
    batch = sequence.batch
    assert batch is not None
    encoded = sequence.encode()
    count = plan.step_count(encoded)
    is_grouped = grouped and not batch.drop_remainder
    group = group_of(batch.rows * mean_bytes(plan), count) if is_grouped else 1
    source, wanted = tf.constant(plan.source), tf.constant(encoded)

    def finished(dataset: Any) -> Any:
        made = with_length(dataset, sequence.length) if counted else dataset
        return with_positions(made) if symbolic else made

    shuffle = sequence.shuffle
    assert shuffle is not None
    numbers = (count, piece_size(count, group), as_int64(shuffle.seed))
    known_by = made_once(
        _planned_steps,
        (shuffle.reshuffles, shuffle.seeded, group),
        *(tf.constant(number, tf.int64) for number in numbers),
        source,
        wanted,
    )
    return PlannedBatches(
        batch.rows, batch.drop_remainder, group, known_by, source, wanted, finished=finished
    )


def _planned_steps(
    renewed: bool,
    seeded: bool,
    group: int,
    count: Any,
    size: Any,
    seed: Any,
    source: Any,
    sequence: Any,
) -> Any:
    keys = IterationKeys(seed, renewed, seeded)
    return steps(pieces_of_steps(count, size), source, sequence, keys, group)


def planned_records(plan: OpenPlan, sequence: Sequence, symbolic: bool) -> Any:
    """Returns the single records of a shuffle."""
    rows = max(1, min(_MAX_BLOCK_RECORDS, _BLOCK_BYTES // mean_bytes(plan)))
    blocks = planned_batches(plan, dataclasses.replace(sequence, batch=Batched(rows)))
    read = blocks.mapped(lambda *batch: records(*blocks.read(*batch)))
    elements = with_length(unbatched(flat_map(read, emit_block)), sequence.length)
    return with_positions(elements) if symbolic else elements


def mean_bytes(plan: OpenPlan) -> int:
    return max(1, plan.file_bytes // max(1, plan.record_count))
