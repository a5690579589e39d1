"""Shuffled records: steps, which any process can read."""

from __future__ import annotations

import dataclasses
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow.build.batches import Batches, group_of
from tfrfast.tensorflow.build.functions import unbatched, with_length
from tfrfast.tensorflow.build.iteration_keys import IterationKeys, as_int64
from tfrfast.tensorflow.build.making import made_once
from tfrfast.tensorflow.build.steps import piece_size, pieces_of_steps, steps
from tfrfast.tensorflow.counting import OpenPlan
from tfrfast.tensorflow.saving import with_positions
from tfrfast.tensorflow.sequence import Batched, Sequence

# The approximate bytes of a block of shuffled records, and its largest number of records.
_BLOCK_BYTES = 1 << 20
_MAX_BLOCK_RECORDS = 4096


def shuffled_batches(
    plan: OpenPlan,
    sequence: Sequence,
    *,
    grouped: bool = False,
    symbolic: bool = True,
    counted: Sequence | None,
) -> Batches:
    """Returns the batches of a shuffle.

    With `symbolic`, checkpoints hold positions alone. `counted` has as many elements as will be
    made of the batches; None: any number.
    """
    batch, shuffle = sequence.batch, sequence.shuffle
    assert batch is not None
    assert shuffle is not None
    encoded = sequence.encode()
    count = plan.step_count(encoded)
    is_grouped = grouped and not batch.drop_remainder
    group = group_of(batch.rows * mean_bytes(plan), count) if is_grouped else 1
    source, order = tf.constant(plan.source), tf.constant(encoded)

    def finished(dataset: Any) -> Any:
        made = dataset if counted is None else with_length(dataset, counted.length)
        return with_positions(made) if symbolic else made

    numbers = (count, piece_size(count, group), as_int64(shuffle.seed))
    known_by = made_once(
        _steps,
        (shuffle.reshuffles, shuffle.seeded, group),
        *(tf.constant(number, tf.int64) for number in numbers),
        source,
        order,
    )
    made_as = batch.rows, batch.drop_remainder, group, mean_bytes(plan)
    return Batches(*made_as, known_by, source, order, finished=finished)


def _steps(
    renewed: bool,
    seeded: bool,
    group: int,
    count: Any,
    size: Any,
    seed: Any,
    source: Any,
    order: Any,
) -> Any:
    keys = IterationKeys(seed, renewed, seeded)
    return steps(pieces_of_steps(count, size), source, order, keys, group)


def shuffled_records(plan: OpenPlan, sequence: Sequence, symbolic: bool) -> Any:
    """Returns the single records of a shuffle."""
    rows = max(1, min(_MAX_BLOCK_RECORDS, _BLOCK_BYTES // mean_bytes(plan)))
    in_blocks = dataclasses.replace(sequence, batch=Batched(rows))
    blocks = shuffled_batches(plan, in_blocks, counted=in_blocks).blocks()
    elements = with_length(unbatched(blocks), sequence.length)
    return with_positions(elements) if symbolic else elements


def mean_bytes(plan: OpenPlan) -> int:
    return max(1, plan.file_bytes // max(1, plan.record_count))
