"""Records in file order: as blocks of strings, or found first, cut into batches, and then read.

Indexes only make finding records faster. So a dataset is the same graph with and without indexes,
and a checkpoint fits both.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfrfast.storage.remote.options import Storage
from tfrfast.tensorflow.batches import Batches, StringBatches, group_of
from tfrfast.tensorflow.blocks import emit_block, in_parts, records
from tfrfast.tensorflow.columns import TensorFeatures
from tfrfast.tensorflow.emission import with_length
from tfrfast.tensorflow.functions import flat_map, parallel_map, rebatched, unbatched
from tfrfast.tensorflow.iteration_keys import IterationKeys
from tfrfast.tensorflow.library import ops
from tfrfast.tensorflow.planning import COMPRESSION_CODES
from tfrfast.tensorflow.sequence import EVERYTHING, Sequence
from tfrfast.tensorflow.steps import pieces_of_files, steps, steps_of_all

# One thread at a time makes a shard's index. A second call waits for the first.
_PARALLEL_FINDS = 2
# The number of blocks of one mebibyte whose records one call finds. In a compressed shard, one
# block: finding inflates spans, which are soon dropped, so their records should be read at once.
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

    def _pieces(self, wanted: Any) -> Any:
        files = tf.data.Dataset.range(tf.size(self._names, tf.int64))
        return pieces_of_files(self.source, wanted, files)

    def blocks(self) -> Any:
        """Returns all records in blocks, which TensorFlow does not shard by file."""
        wanted = tf.constant(EVERYTHING.encode())
        return self._read(steps_of_all(self._pieces(wanted)), wanted)

    def records(self, sequence: Sequence) -> Any:
        """Returns a sequence without a shuffle, record by record."""
        return _ended(unbatched(_repeated(self._payloads(sequence), sequence)), sequence)

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
        if self._skips_damage:
            found = self._payloads(sequence)
        else:
            found = self._addresses(sequence, size * group if group > 1 else 0)
        if not ends_with_epoch:
            found = _repeated(found, sequence)

        def again(size: int, is_full: bool) -> Any:
            # TensorFlow has no symbolic checkpoints of rebatch().
            if symbolic:
                return unbatched(found).batch(size, is_full)
            return rebatched(found, size, is_full)

        def finished(dataset: Any) -> Any:
            ended = _ended(dataset, sequence, counted)
            return _repeated(ended, sequence) if ends_with_epoch else ended

        # Damaged records are left out before batches are cut, so that batches are full.
        if self._skips_damage:
            return StringBatches(again(size, is_full), size if is_full else None, finished)
        cut = again(size * group, is_full)
        return _FoundBatches(self.source, cut, size, is_full, group, finished)

    def _payloads(self, sequence: Sequence) -> Any:
        wanted = tf.constant(sequence.of_one_epoch.encode())
        return self._read(self._steps(wanted), wanted)

    def _read(self, blocks: Any, wanted: Any) -> Any:
        return flat_map(parallel_map(blocks, _read_block, self.source, wanted), emit_block)

    def _addresses(self, sequence: Sequence, group_rows: int) -> Any:
        """Returns the addresses of records, for a few MiB at a time.

        For groups of `group_rows`, filling rows precede an error, so that no complete group before
        the error is held back. Only filling rows are lost with the error.
        """
        wanted = tf.constant(sequence.of_one_epoch.encode())

        length = 1 if self._is_compressed else _BLOCKS_AT_ONCE
        found = parallel_map(
            self._steps(wanted, length), _find, self.source, wanted, calls=_PARALLEL_FINDS
        )
        if group_rows == 0:
            return flat_map(found, emit_block)
        return flat_map(found, _emit_found, tf.constant(group_rows - 1, tf.int64))

    def _steps(self, wanted: Any, length: int = 1) -> Any:
        """Returns the blocks that hold the wanted records."""
        pieces, no_order = self._pieces(wanted), IterationKeys(0)
        return steps(pieces, self.source, wanted, no_order, length)


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
    """Batches of found records, which are read by their addresses."""

    def __init__(
        self,
        source: Any,
        addresses: Any,
        size: int,
        is_full: bool,
        group: int,
        finished: Callable[[Any], Any],
    ) -> None:
        super().__init__(size if is_full else None, group)
        self._source, self._addresses, self._size, self._finished = (
            source,
            addresses,
            size,
            finished,
        )

    @property
    def known_by(self) -> Any:
        return self._addresses

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
        return ops.tfrfast_read_records(self._source, self._fails, *batch)

    def decode(self, features: TensorFeatures, *batch: Any) -> tuple[Any, Any, Any]:
        return ops.tfrfast_decode_records(
            self._source, self._fails, *batch, features.text, column_types=features.column_types
        )

    def finished(self, dataset: Any) -> Any:
        return self._finished(dataset)


def _repeated(dataset: Any, sequence: Sequence) -> Any:
    return dataset.repeat(sequence.epochs) if sequence.repeated else dataset


def _ended(dataset: Any, sequence: Sequence, counted: bool = True) -> Any:
    """Returns the dataset, ended after the requested elements. An endless sequence has an infinite
    length.
    """
    if sequence.batch is not None and sequence.batch.ends_with_epoch:  # and is repeated later
        sequence = dataclasses.replace(sequence, epochs=1)
    if sequence.epochs is None:
        return with_length(dataset, None)
    return dataset if sequence.records.is_open or not counted else dataset.take(sequence.length)
