"""Shuffled records in tf.data: steps, and the op that reads one."""

from __future__ import annotations

import dataclasses
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow.batches import Batches
from tfrfast.tensorflow.columns import TensorFeatures
from tfrfast.tensorflow.emission import emit_block, records, with_length
from tfrfast.tensorflow.functions import flat_map
from tfrfast.tensorflow.keys import Keys, as_int64
from tfrfast.tensorflow.library import ops
from tfrfast.tensorflow.planning import OpenPlan
from tfrfast.tensorflow.sequence import Batch, Sequence
from tfrfast.tensorflow.steps import pieces_of_steps, steps

# A block of shuffled records holds about this many bytes, and at most so many records.
_BLOCK_BYTES = 1 << 20
_MAX_BLOCK_RECORDS = 4096


class PlannedBatches(Batches):
    """The batches of a shuffle, known by a key of the order, the files, and a step's number."""

    def __init__(self, plan: OpenPlan, sequence: Sequence) -> None:
        assert sequence.batch is not None
        super().__init__(sequence.batch.rows if sequence.batch.drop_remainder else None)
        encoded = sequence.encode()
        self._length = sequence.length
        self._source, self._sequence = tf.constant(plan.source), tf.constant(encoded)
        pieces = pieces_of_steps(plan.step_count(encoded))
        self._steps = steps(pieces, self._source, self._sequence, _keys_of(sequence))

    @property
    def known_by(self) -> Any:
        return self._steps

    def read(self, *batch: Any) -> tuple[Any, Any, Any]:
        key, files, step = batch
        return ops.tfrfast_read_batch_v2(self._source, self._sequence, files, key, step)

    def decode(self, features: TensorFeatures, *batch: Any) -> tuple[Any, Any, Any]:
        key, files, step = batch
        return ops.tfrfast_decode_batch_v2(
            self._source,
            self._sequence,
            files,
            key,
            step,
            features.text,
            column_types=features.column_types,
        )

    def finished(self, dataset: Any) -> Any:
        return with_length(dataset, self._length).with_options(small_checkpoints())


def planned_records(plan: OpenPlan, sequence: Sequence) -> Any:
    """The records of a shuffle one by one."""
    mean_bytes = plan.file_bytes // max(1, plan.record_count)
    rows = max(1, min(_MAX_BLOCK_RECORDS, _BLOCK_BYTES // max(1, mean_bytes)))
    blocks = PlannedBatches(plan, dataclasses.replace(sequence, batch=Batch(rows)))
    read = blocks.mapped(lambda *batch: records(*blocks.read(*batch)))
    elements = with_length(flat_map(read, emit_block).unbatch(), sequence.length)
    return elements.with_options(small_checkpoints())


def small_checkpoints() -> Any:
    """Checkpoints then hold positions, not records in flight. The user's options come first."""
    options = tf.data.Options()
    options.experimental_symbolic_checkpoint = True
    return options


def _keys_of(sequence: Sequence) -> Keys:
    shuffle = sequence.shuffle
    assert shuffle is not None
    renewed = shuffle.reshuffles and not sequence.repeated
    return Keys(
        as_int64(shuffle.seed),
        known=shuffle.seeded and not renewed,
        renewed=renewed,
        seeded=shuffle.seeded,
    )
