"""Makes the dataset of a pipeline."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow.build.batches import Batches, group_of
from tfrfast.tensorflow.build.file_order import FileOrder, stream
from tfrfast.tensorflow.build.functions import made_once, unbatched, with_length
from tfrfast.tensorflow.build.lifted_batches import elements_of, lifted_batches
from tfrfast.tensorflow.build.steps import (
    as_int64,
    piece_size,
    steps,
)
from tfrfast.tensorflow.plan.pipeline import Pipeline
from tfrfast.tensorflow.read import nodes
from tfrfast.tensorflow.saving import with_positions
from tfrfast.tensorflow.sequence import EVERYTHING, Batched, Sequence
from tfrfast.tensorflow.source import OpenPlan

# The approximate bytes of a block of shuffled records, and its largest number of records.
_BLOCK_BYTES = 1 << 20
_MAX_BLOCK_RECORDS = 4096


def build(pipeline: Pipeline) -> Any:
    if pipeline.batch is not None:
        return _followed(pipeline, _batches(pipeline, pipeline.batch))
    source, sequence = pipeline.source, pipeline.sequence
    if sequence is None:
        records = stream(source)
    elif source.shuffles_files and sequence.shuffle is None:
        records = _asked_of(stream(source), sequence)  # without indexes
    elif sequence.shuffle is None:
        records = FileOrder(source).records(sequence)
    else:
        assert source.plan is not None
        records = _shuffled_records(source.plan, sequence, pipeline.saves_positions)
    if pipeline.cached:
        records = records.cache()
    return _followed(pipeline, _called(records, pipeline.record_calls))


def _called(elements: Any, calls: Iterable[Any]) -> Any:
    for call in calls:
        elements = nodes.moved(call, [elements])
    return elements


def _asked_of(records: Any, sequence: Sequence) -> Any:
    """Returns the records that a sequence without a shuffle takes, in their order."""
    wanted = sequence.records
    if wanted.start:
        records = records.skip(wanted.start)
    if wanted.step > 1:
        records = records.shard(wanted.step, 0)
    if wanted.stop < EVERYTHING.records.stop:
        records = records.take(len(wanted))
    return records.repeat(sequence.epochs) if sequence.repeated else records


def _batches(pipeline: Pipeline, batch: Batched) -> Any:
    batches = _unread_batches(pipeline)
    if pipeline.lifted is not None:
        made = lifted_batches(
            batches,
            None if pipeline.in_blocks else batch,
            pipeline.lifted,
            _is_symbolic(pipeline),
            pipeline.batches_in_block,
        )
        if pipeline.filtered_batch is not None:
            return made.rebatch(
                pipeline.filtered_batch.rows, pipeline.filtered_batch.drop_remainder
            )
        if pipeline.elements is None:
            return made
        return _called(elements_of(made, pipeline.elements.spec), pipeline.elements.calls)
    return batches.contents(pipeline.features)


def _unread_batches(pipeline: Pipeline) -> Batches:
    source, sequence = pipeline.source, pipeline.sequence
    assert sequence is not None
    blocks = sequence.in_blocks_of(pipeline.batches_in_block)
    grouped = pipeline.lifted is None
    if sequence.shuffle is None:
        are_cut = pipeline.batches_in_block > 1
        in_blocks = pipeline.in_blocks or are_cut
        order = FileOrder(source)
        return order.batches(blocks, source.record_bytes, grouped, in_blocks, are_cut)
    assert source.plan is not None
    return _shuffled_batches(
        source.plan,
        blocks,
        grouped=grouped,
        symbolic=pipeline.saves_positions,
        counted=None if pipeline.in_blocks else sequence,
    )


def _is_symbolic(pipeline: Pipeline) -> bool:
    """True if checkpoints hold positions alone."""
    asked = pipeline.options and pipeline.options.experimental_symbolic_checkpoint
    usual = pipeline.shuffle is not None and pipeline.saves_positions
    return usual if asked is None else bool(asked)


def _followed(pipeline: Pipeline, dataset: Any) -> Any:
    """Returns the dataset with the calls at its end."""
    if pipeline.prefetched is not None:
        dataset = dataset.prefetch(pipeline.prefetched)
    return dataset if pipeline.options is None else dataset.with_options(pipeline.options)


def _shuffled_batches(
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
    group = group_of(batch.rows * _mean_bytes(plan), count) if is_grouped else 1
    source, order = tf.constant(plan.source), tf.constant(encoded)

    def finished(dataset: Any) -> Any:
        made = dataset if counted is None else with_length(dataset, counted.length)
        return with_positions(made) if symbolic else made

    numbers = (count, piece_size(count, group), as_int64(shuffle.seed))
    known_by = made_once(
        steps,
        (shuffle.reshuffles, shuffle.seeded, group),
        *(tf.constant(number, tf.int64) for number in numbers),
        source,
        order,
    )
    made_as = batch.rows, batch.drop_remainder, group, _mean_bytes(plan)
    return Batches(*made_as, known_by, source, order, finished=finished)


def _shuffled_records(plan: OpenPlan, sequence: Sequence, symbolic: bool) -> Any:
    """Returns the single records of a shuffle."""
    rows = max(1, min(_MAX_BLOCK_RECORDS, _BLOCK_BYTES // _mean_bytes(plan)))
    in_blocks = replace(sequence, batch=Batched(rows))
    blocks = _shuffled_batches(plan, in_blocks, counted=in_blocks).blocks()
    elements = with_length(unbatched(blocks), sequence.length)
    return with_positions(elements) if symbolic else elements


def _mean_bytes(plan: OpenPlan) -> int:
    return max(1, plan.file_bytes // max(1, plan.record_count))
