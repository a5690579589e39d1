"""Records in file order: as blocks of strings, or found first, cut into batches, and then read.

Indexes only make finding records faster. So a dataset is the same graph with and without indexes,
and a checkpoint fits both.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import tensorflow as tf

from tfrfast.storage.remote.options import Storage
from tfrfast.tensorflow.batches import Batches, StringBatches, group_of
from tfrfast.tensorflow.blocks import emit_block, in_parts, records
from tfrfast.tensorflow.columns import TensorFeatures
from tfrfast.tensorflow.emission import with_length
from tfrfast.tensorflow.functions import flat_map, parallel_map, rebatched, unbatched
from tfrfast.tensorflow.iteration_keys import IterationKeys
from tfrfast.tensorflow.library import ops
from tfrfast.tensorflow.making import made_once
from tfrfast.tensorflow.planning import COMPRESSION_CODES
from tfrfast.tensorflow.sequence import EVERYTHING, Sequence
from tfrfast.tensorflow.steps import pieces_of_files, steps, steps_of_all

# One thread at a time makes a shard's index. A second call waits for the first.
_PARALLEL_FINDS = 2
# The number of blocks of one mebibyte whose records one call finds.
_BLOCKS_AT_ONCE = 4
# The numbers of an address.
_ADDRESS = 4
# The same numbers for a place without a record.
_NO_RECORD = -1


class FileOrder:
    """The records of shards that are not open yet. Names may be symbolic."""

    def __init__(
        self,
        names: Any,
        skip_damage: bool,
        zero_copy: bool,
        compression: str,
        storage: Storage,
    ) -> None:
        self._names = names
        self._is_compressed = bool(compression)
        self._skips_damage = skip_damage
        self.source = ops.tfrfast_source(
            filenames=names,
            skip_damage=tf.constant(int(skip_damage), tf.int64),
            zero_copy=tf.constant(int(zero_copy), tf.int64),
            compression=tf.constant(COMPRESSION_CODES[compression], tf.int64),
            storage=tf.constant(storage.encoded),
        )

    def _given(self, sequence: Sequence) -> tuple[Any, Any, Any]:
        """Returns the source, the number of its files, and the wanted records of one epoch."""
        wanted = tf.constant(sequence.of_one_epoch.encode())
        return self.source, tf.size(self._names, tf.int64), wanted

    def blocks(self) -> Any:
        """Returns all records in blocks, which TensorFlow does not shard by file."""
        given = self._given(EVERYTHING)
        return _payloads(steps_of_all(_pieces(*given)), *given)

    def records(self, sequence: Sequence) -> Any:
        """Returns a sequence without a shuffle, record by record."""
        return _ended(made_once(_records, (_repeats(sequence),), *self._given(sequence)), sequence)

    def batches(
        self,
        sequence: Sequence,
        symbolic: bool,
        record_bytes: int | None = None,
        counted: bool = True,
    ) -> Batches:
        """Returns the batches of a sequence without a shuffle.

        With `symbolic`, checkpoints can hold positions alone, but cutting batches is slower. If the
        size of records is known, one call reads several small batches. Unless `counted`, there
        may be more elements than batches.
        """
        assert sequence.batch is not None
        size, is_full = sequence.batch.rows, sequence.batch.drop_remainder
        ends_with_epoch = sequence.batch.ends_with_epoch
        can_group = not (self._skips_damage or is_full or record_bytes is None)
        group = group_of(size * (record_bytes or 0)) if can_group else 1
        cut = _Cut(size * group, is_full, symbolic, None if ends_with_epoch else _repeats(sequence))

        def finished(dataset: Any) -> Any:
            ended = _ended(dataset, sequence, counted)
            return _repeated(ended, _repeats(sequence)) if ends_with_epoch else ended

        given = self._given(sequence)
        # Damaged records are left out before batches are cut, so that batches are full.
        if self._skips_damage:
            strings = made_once(_cut_payloads, (cut,), *given)
            return StringBatches(size, is_full, 1, strings, finished=finished)
        # In a compressed shard, finding inflates spans, which are soon dropped, so their records
        # should be read at once.
        blocks = 1 if self._is_compressed else _BLOCKS_AT_ONCE
        found = made_once(_cut_addresses, (cut, blocks, group > 1), *given)
        return _FoundBatches(size, is_full, group, found, self.source, finished=finished)


class _Cut(NamedTuple):
    """How batches, or groups of batches, are cut."""

    rows: int
    is_full: bool
    symbolic: bool
    repeats: int | None

    def of(self, found: Any) -> Any:
        """Returns rows cut from `found`."""
        found = _repeated(found, self.repeats)
        # TensorFlow has no symbolic checkpoints of rebatch().
        if self.symbolic:
            return unbatched(found).batch(self.rows, self.is_full)
        return rebatched(found, self.rows, self.is_full)


def _records(repeats: int | None, *given: Any) -> Any:
    return unbatched(_repeated(_payloads(_steps(1, *given), *given), repeats))


def _cut_payloads(cut: _Cut, *given: Any) -> Any:
    return cut.of(_payloads(_steps(1, *given), *given))


def _cut_addresses(cut: _Cut, blocks: int, fills: bool, *given: Any) -> Any:
    """Cuts the addresses of records, which are found `blocks` at a time.

    For groups (`fills`), filling rows precede an error, so that no complete group before the error
    is held back. Only filling rows are lost with the error.
    """
    source, _, wanted = given
    found = parallel_map(_steps(blocks, *given), _find, source, wanted, calls=_PARALLEL_FINDS)
    if not fills:
        return cut.of(flat_map(found, emit_block))
    return cut.of(flat_map(found, _emit_found, tf.constant(cut.rows - 1, tf.int64)))


def _payloads(blocks: Any, source: Any, _: Any, wanted: Any) -> Any:
    return flat_map(parallel_map(blocks, _read_block, source, wanted), emit_block)


def _steps(blocks: int, source: Any, files: Any, wanted: Any) -> Any:
    """Returns the blocks that hold the wanted records."""
    no_order = IterationKeys(0)
    return steps(_pieces(source, files, wanted), source, wanted, no_order, blocks)


def _pieces(source: Any, files: Any, wanted: Any) -> Any:
    return pieces_of_files(source, wanted, tf.data.Dataset.range(files))


def _read_block(block: Any, source: Any, wanted: Any) -> tuple[Any, ...]:
    return records(*ops.tfrfast_read_blocks(source, wanted, block))


def _find(blocks: Any, source: Any, wanted: Any) -> tuple[Any, ...]:
    return records(*ops.tfrfast_find_records(source, wanted, blocks), _ADDRESS)


def _emit_found(head: Any, error: Any, tail: Any, filling: Any) -> Any:
    """Like emit_block(), with `filling` rows without a record before an error."""

    def filled() -> Any:
        rows = tf.where(tf.equal(error, ""), tf.constant(0, tf.int64), filling)
        shape = tf.stack([rows, tf.constant(_ADDRESS, tf.int64)])
        fill = tf.fill(shape, tf.constant(_NO_RECORD, tf.int64))
        return in_parts(tf.concat([head, fill], axis=0), error, tail)

    is_sound = tf.logical_and(tf.equal(error, ""), tf.size(head) > 0)
    return tf.cond(is_sound, lambda: tf.data.Dataset.from_tensors(head), filled)


class _FoundBatches(Batches):
    """Batches of found records, which are read by their addresses, from the source."""

    def count(self, *group: Any) -> Any:
        every = -(-tf.shape(group[0], tf.int64)[0] // self._size)
        if self._group == 1:
            return every
        # Before an error only whole batches count, as in tf.data.
        shards = group[0][:, 0]
        whole = tf.math.count_nonzero(shards > _NO_RECORD) // self._size
        return tf.where(tf.equal(shards[-1], _NO_RECORD), whole, every)

    def member(self, number: int, *group: Any) -> tuple[Any, ...]:
        if self._group == 1:
            return group
        return (group[0][number * self._size : (number + 1) * self._size],)

    def read(self, *batch: Any) -> tuple[Any, Any, Any]:
        return ops.tfrfast_read_records(*self._tensors, self._fails, *batch)

    def decode(self, features: TensorFeatures, *batch: Any) -> tuple[Any, Any, Any]:
        return ops.tfrfast_decode_records(
            *self._tensors, self._fails, *batch, features.text, column_types=features.column_types
        )


def _repeats(sequence: Sequence) -> int | None:
    """Returns the count for repeat(); None without a repeat()."""
    endless = -1
    return (endless if sequence.epochs is None else sequence.epochs) if sequence.repeated else None


def _repeated(dataset: Any, repeats: int | None) -> Any:
    return dataset if repeats is None else dataset.repeat(repeats)


def _ended(dataset: Any, sequence: Sequence, counted: bool = True) -> Any:
    """Returns the dataset, ended after the requested elements. An endless sequence has an infinite
    length.
    """
    if sequence.batch is not None and sequence.batch.ends_with_epoch:  # and is repeated later
        sequence = dataclasses.replace(sequence, epochs=1)
    if sequence.epochs is None:
        return with_length(dataset, None)
    return dataset if sequence.records.is_open or not counted else dataset.take(sequence.length)
