"""Records in file order: a scan walks from batch to batch, and a parallel map reads the batches.

The state of the scan is a cursor, a few numbers. A batch is a cursor and a number of rows. So
indexes only make the walk faster, and a checkpoint holds places instead of records.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from tfrfast.tensorflow import internals
from tfrfast.tensorflow.build.batches import Batches, StringBatches, group_of
from tfrfast.tensorflow.build.functions import (
    flat_map,
    made_once,
    rebatched,
    scan,
    show_a_reader,
    take_while,
    unbatched,
    with_length,
)
from tfrfast.tensorflow.build.steps import endless, pieces_here
from tfrfast.tensorflow.library import ops
from tfrfast.tensorflow.read.file_names import any_has_scheme
from tfrfast.tensorflow.sequence import EVERYTHING, Sequence
from tfrfast.tensorflow.source import COMPRESSION_CODES, Source

# What the walk is told in place of a file.
_EPOCH_END, _END = np.array([(-1, 0), (-2, 0)], np.int64)


class FileOrder:
    """The records of shards that are not open yet."""

    def __init__(self, source: Source, names: Any = None) -> None:
        """With `names`, which may be symbolic, reads other shards with the same options."""
        self._names = source.names.tensor if names is None else names
        # The number of files that take turns, and the records of a turn.
        self._turns = (source.turns or 1, source.block_records) if names is None else (1, 1)
        self._skips_damage = source.skip_damage
        self._source = ops.tfrfast_source(
            filenames=self._names,
            skip_damage=tf.constant(int(source.skip_damage), tf.int64),
            compression=tf.constant(COMPRESSION_CODES[source.compression], tf.int64),
            storage=tf.constant(source.storage.encoded),
        )
        if names is None:
            source.open_files.keep(self._source)

    def _given(
        self, sequence: Sequence, rows: int = 0, group: int = 1, ends_short: bool = False
    ) -> tuple[Any, ...]:
        """Returns what the walk is given: the epochs that batches go on through, the source, the
        number of its files, and the wanted records.

        Without `rows`, batches are blocks of any size.
        """
        wanted, batch = sequence.records, sequence.batch
        repeats = _repeats(sequence) if batch is None or not batch.ends_with_epoch else None
        is_full = rows > 0 and batch is not None and batch.drop_remainder
        flags = map(int, (is_full, ends_short, repeats is not None))
        numbers = wanted.start, wanted.step, len(wanted), rows, group, *self._turns, *flags
        return (
            tf.constant(1 if repeats is None else repeats, tf.int64),
            self._source,
            tf.size(self._names, tf.int64),
            tf.constant(numbers, tf.int64),
        )

    def blocks(self) -> Any:
        """Returns all records in blocks, which TensorFlow does not shard by file."""
        return _payloads(False, *self._given(EVERYTHING))

    def records(self, sequence: Sequence) -> Any:
        """Returns a sequence without a shuffle, record by record."""
        return _ended(made_once(_records, (), *self._given(sequence)), sequence)

    def batches(
        self,
        sequence: Sequence,
        record_bytes: int | None,
        grouped: bool,
        in_blocks: bool,
        are_cut: bool = False,
    ) -> Batches:
        """Returns the batches of a sequence without a shuffle.

        With `grouped`, one call reads several small batches, if the size of records is known. With
        `in_blocks`, batches may have fewer rows. If batches `are_cut` further, an error comes with
        the rows before it, of which the last may be too few for a batch.
        """
        batch = sequence.batch
        assert batch is not None
        size, is_full = batch.rows, batch.drop_remainder

        def finished(dataset: Any) -> Any:
            made = dataset.repeat(_repeats(sequence)) if batch.ends_with_epoch else dataset
            return _ended(made, sequence)

        # Damaged records are left out before batches are cut, so that batches are full.
        if self._skips_damage:
            strings = made_once(_cut_payloads, (size, is_full), *self._given(sequence))
            return StringBatches(size, is_full, 1, record_bytes or 0, strings, finished=finished)
        can_group = grouped and not is_full and record_bytes is not None
        group = group_of(size * (record_bytes or 0)) if can_group else 1
        repeats, source, files, wanted = self._given(sequence, size, group, in_blocks)
        walked = made_once(_walked, (True, are_cut), repeats, source, files, wanted)
        order = tf.constant("")
        return Batches(
            size, is_full, group, record_bytes or 0, walked, source, order, finished=finished
        )


def stream(source: Source) -> Any:
    """Returns all records in file order, or in the order of `num_parallel_reads`."""

    def symbolic(names: Any) -> Any:
        # TensorFlow looks for a reader in the user's function, and not in the functions of If.
        show_a_reader()
        return tf.cond(
            any_has_scheme(names),
            lambda: internals.TheirTFRecordDataset(names, source.compression),
            lambda: unbatched(FileOrder(source, names).blocks()),
        )

    if source.has_known_order and not source.shuffles_files:
        return FileOrder(source).records(EVERYTHING)
    names = source.names
    if source.num_parallel_reads is None and names.tensor is not None:
        return symbolic(names.tensor)
    return internals.dataset_of_files(
        lambda name: symbolic(tf.reshape(name, [1])), names.dataset, source.num_parallel_reads
    )


def _walked(
    may_shard: bool, joins_errors: bool, repeats: Any, source: Any, files: Any, wanted: Any
) -> Any:
    """Returns groups of batches, and the error of each batch."""

    def file(number: Any) -> Any:
        return tf.data.Dataset.from_tensors(tf.stack([number, tf.zeros([], tf.int64)]))

    def step(state: Any, told: Any) -> tuple[Any, ...]:
        state, batches, errors = ops.tfrfast_walk(source, wanted, state, told)
        state.set_shape([None])
        batches.set_shape([None, None, None])
        errors.set_shape([None, None])
        return state, batches, errors

    def pieces(files: Any) -> Any:
        told = files.concatenate(tf.data.Dataset.from_tensors(_EPOCH_END)).repeat(repeats)
        told = told.concatenate(endless(tf.constant(_END, tf.int64)))
        walk = scan(told, tf.zeros([0], tf.int64), step)
        return take_while(walk, lambda batches, _: tf.shape(batches)[1] > 0).prefetch(1)

    def own(share: Any) -> Any:
        return pieces(tf.data.Dataset.from_tensors(share))

    every = pieces(flat_map(tf.data.Dataset.range(files), file))
    here = pieces_here(every, own) if may_shard else every

    def of_piece(*piece: Any) -> Any:
        batches = _with_errors_joined(*piece[-2:]) if joins_errors else piece[-2:]
        return tf.data.Dataset.from_tensor_slices(batches)

    return flat_map(here, of_piece)


def _with_errors_joined(batches: Any, errors: Any) -> tuple[Any, Any]:
    """Gives each error that stands alone to the batch before it, if that has none."""
    fails = tf.not_equal(errors[:, :1], "")
    no = tf.zeros_like(fails[:1])
    goes = tf.logical_and(fails, tf.concat([no, tf.logical_not(fails[:-1])], 0))
    gets = tf.concat([goes[1:], no], 0)
    joined = tf.where(gets, tf.concat([errors[1:], errors[:1]], 0), errors)
    stays = tf.where(tf.logical_not(goes[:, 0]))[:, 0]
    return tf.gather(batches, stays), tf.gather(joined, stays)


def _records(*given: Any) -> Any:
    return unbatched(_payloads(True, *given))


def _cut_payloads(size: int, is_full: bool, *given: Any) -> Any:
    return rebatched(_payloads(True, *given), size, is_full)


def _payloads(may_shard: bool, *given: Any) -> Any:
    """Returns the records in blocks."""
    _, source, _, _ = given
    return Batches(
        0, False, 1, 0, _walked(may_shard, False, *given), source, tf.constant("")
    ).blocks()


def _repeats(sequence: Sequence) -> int | None:
    """Returns the count for repeat(); None without a repeat()."""
    return (-1 if sequence.epochs is None else sequence.epochs) if sequence.repeated else None


def _ended(dataset: Any, sequence: Sequence) -> Any:
    """Returns the dataset. An endless sequence has an infinite length."""
    return with_length(dataset, None) if sequence.epochs is None else dataset
