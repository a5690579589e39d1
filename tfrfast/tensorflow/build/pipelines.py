"""Makes the dataset of a pipeline."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tfrfast.tensorflow.build.batches import Batches
from tfrfast.tensorflow.build.file_order import FileOrder, stream
from tfrfast.tensorflow.build.lifted_batches import elements_of, lifted_batches
from tfrfast.tensorflow.build.shuffled import shuffled_batches, shuffled_records
from tfrfast.tensorflow.plan.pipeline import Pipeline
from tfrfast.tensorflow.read import nodes
from tfrfast.tensorflow.sequence import EVERYTHING, Batched, Sequence


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
        records = shuffled_records(source.plan, sequence, pipeline.saves_positions)
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
    return shuffled_batches(
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
