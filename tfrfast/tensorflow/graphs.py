"""The tf.data graphs: steps, one parallel map of a stateless op, and what emits its results."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfrfast import _native
from tfrfast.tensorflow import functions
from tfrfast.tensorflow.columns import TensorFeatures
from tfrfast.tensorflow.emission import (
    emit_batch,
    emit_block,
    emit_columns,
    records,
    with_length,
)
from tfrfast.tensorflow.functions import flat_map
from tfrfast.tensorflow.keys import Keys, as_int64
from tfrfast.tensorflow.library import ops
from tfrfast.tensorflow.planning import COMPRESSION_CODES, OpenPlan
from tfrfast.tensorflow.sequence import Batch, Progression, Sequence
from tfrfast.tensorflow.steps import (
    ALL_FILES,
    pieces_of_files,
    pieces_of_steps,
    steps,
    steps_of_pieces,
)

# Blocks and batches that are read at once: more threads than this only hold more memory.
_MAX_PARALLEL_READS = 16
# A block of shuffled records holds about this many bytes, and at most so many records.
_BLOCK_BYTES = 1 << 20
_MAX_BLOCK_RECORDS = 4096
# For a streaming source, whose records nobody has counted.
EVERYTHING = Sequence(Progression(0, 1, _native.MAX_RECORDS)).encode()


def parallel_reads() -> int:
    return min(_MAX_PARALLEL_READS, _native.usable_processors())


def parallel_map(dataset: Any, function: Callable[..., Any], calls: int | None = None) -> Any:
    """Results come in order, whichever is ready first. `function` takes flattened elements."""
    return functions.parallel_map(dataset, function, calls=calls or parallel_reads())


def streaming_blocks(
    names: Any, skip_damage: bool, zero_copy: bool, compression: str, can_be_sharded: bool
) -> Any:
    """The records of shards that nobody has looked at yet, in blocks; `names` may be symbolic."""
    source = ops.tfrfast_source(
        filenames=names,
        skip_damage=tf.constant(int(skip_damage), tf.int64),
        zero_copy=tf.constant(int(zero_copy), tf.int64),
        compression=tf.constant(COMPRESSION_CODES[compression], tf.int64),
    )
    sequence = tf.constant(EVERYTHING)

    def read(_: Any, files: Any, block: Any) -> Any:
        return records(*ops.tfrfast_read_block_v2(source, sequence, files, block))

    blocks = pieces_of_files(source, tf.data.Dataset.range(tf.size(names, tf.int64)))
    if can_be_sharded:
        each = steps(blocks, source, sequence, Keys(0, known=True))
        return flat_map(parallel_map(each, read), emit_block)
    of_all = tf.constant(ALL_FILES, tf.int64)
    numbers = steps_of_pieces(blocks)
    return flat_map(parallel_map(numbers, lambda block: read(None, of_all, block)), emit_block)


def planned(plan: OpenPlan, sequence: Sequence, features: TensorFeatures | None = None) -> Any:
    """A sequence as a dataset: its records one by one, its batches, or their columns."""
    if sequence.batch is None:
        elements = _planned_records(plan, sequence)
    elif features is None:
        elements = _planned_batches(plan, sequence)
    else:
        elements = _planned_columns(plan, sequence, features)
    return elements.with_options(small_checkpoints()) if sequence.shuffle else elements


def small_checkpoints() -> Any:
    """Checkpoints hold positions instead of the records in flight. The user's options come first."""
    options = tf.data.Options()
    options.experimental_symbolic_checkpoint = True
    return options


def _planned_records(plan: OpenPlan, sequence: Sequence) -> Any:
    if sequence.shuffle is None:
        blocks = _read_blocks(plan, sequence)
    else:
        mean_bytes = plan.file_bytes // max(1, plan.record_count)
        rows = max(1, min(_MAX_BLOCK_RECORDS, _BLOCK_BYTES // max(1, mean_bytes)))
        in_blocks = dataclasses.replace(sequence, batch=Batch(rows))
        blocks = flat_map(_read_batches(plan, in_blocks, records), emit_block)
    unbatched = blocks.unbatch()
    # There may be damage after the last record. A dataset that stopped there would miss it.
    return unbatched if plan.damage else with_length(unbatched, sequence.length)


def _planned_batches(plan: OpenPlan, sequence: Sequence) -> Any:
    assert sequence.batch is not None
    if sequence.batch.drop_remainder:  # a damaged one is lost: reading it fails
        full = [sequence.batch.rows]
        batches = _read_batches(plan, sequence, lambda head, *_: tf.ensure_shape(head, full))
    else:
        batches = flat_map(_read_batches(plan, sequence, records), emit_batch)
    return with_length(batches, sequence.length)


def _read_blocks(plan: OpenPlan, sequence: Sequence) -> Any:
    def read(source: Any, encoded: Any, files: Any, _: Any, step: Any) -> Any:
        return records(*ops.tfrfast_read_block_v2(source, encoded, files, step))

    return flat_map(map_steps(plan, sequence, read), emit_block)


def _read_batches(plan: OpenPlan, sequence: Sequence, shaped: Callable[..., Any]) -> Any:
    return map_steps(plan, sequence, lambda *step: shaped(*ops.tfrfast_read_batch_v2(*step)))


def _planned_columns(plan: OpenPlan, sequence: Sequence, features: TensorFeatures) -> Any:
    assert sequence.batch is not None
    full = sequence.batch.drop_remainder
    rows_of_all = sequence.batch.rows if full else None

    def decode(*step: Any) -> Any:
        columns, rows, error = ops.tfrfast_decode_batch_v2(
            *step, features.text, column_types=features.column_types
        )
        columns = features.shaped(columns, rows_of_all)
        if full:  # a damaged one is lost: reading it fails
            return features.assemble(columns)
        return columns, tf.ensure_shape(rows, []), tf.ensure_shape(error, [])

    batches = map_steps(plan, sequence, decode)
    if not full:
        batches = flat_map(batches, emit_columns(features.assemble))
    return with_length(batches, sequence.length)


def map_steps(plan: OpenPlan, sequence: Sequence, function: Callable[..., Any]) -> Any:
    """Maps function(source, sequence, files, key, step) over the steps; `key` is the order's."""
    encoded = sequence.encode()
    source, constant = tf.constant(plan.source), tf.constant(encoded)
    pieces = pieces_of_steps(plan.step_count(encoded))
    each = steps(pieces, source, constant, _keys_of(sequence))
    return parallel_map(each, lambda key, files, step: function(source, constant, files, key, step))


def _keys_of(sequence: Sequence) -> Keys:
    shuffle = sequence.shuffle
    if shuffle is None:
        return Keys(0, known=True)
    renewed = shuffle.reshuffles and not sequence.repeated
    return Keys(
        as_int64(shuffle.seed),
        known=shuffle.seeded and not renewed,
        renewed=renewed,
        seeded=shuffle.seeded,
    )
