"""Records in file order: as blocks of strings, or found first, cut into batches, and then read.

Nothing here depends on whether there are indexes. They only make finding records faster. So a
dataset is the same graph with indexes and without, and a checkpoint fits both.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow.batches import Batches, StringBatches
from tfrfast.tensorflow.columns import TensorFeatures
from tfrfast.tensorflow.emission import emit_block, records, with_length
from tfrfast.tensorflow.functions import flat_map, parallel_map
from tfrfast.tensorflow.keys import Keys
from tfrfast.tensorflow.library import ops
from tfrfast.tensorflow.planning import COMPRESSION_CODES
from tfrfast.tensorflow.sequence import EVERYTHING, Sequence
from tfrfast.tensorflow.steps import ALL_FILES, pieces_of_files, runs, steps, steps_of_pieces

# A shard's index is made by one thread at a time. The second call waits for it.
_PARALLEL_FINDS = 2
# One call finds the records of so many blocks of one mebibyte. In a compressed shard it is one
# block: spans are inflated to find records, and soon forgotten, so they should be read at once.
_BLOCKS_AT_ONCE = 4
# The numbers of an address.
_ADDRESS = 4


class Shards:
    """Shards that are not open yet. Their names may be symbolic."""

    def __init__(self, names: Any, skip_damage: bool, zero_copy: bool, compression: str) -> None:
        self._names = names
        self._is_compressed = bool(compression)
        self._skips_damage = skip_damage
        self.source = ops.tfrfast_source(
            filenames=names,
            skip_damage=tf.constant(int(skip_damage), tf.int64),
            zero_copy=tf.constant(int(zero_copy), tf.int64),
            compression=tf.constant(COMPRESSION_CODES[compression], tf.int64),
        )

    def _pieces(self, wanted: Any) -> Any:
        files = tf.data.Dataset.range(tf.size(self._names, tf.int64))
        return pieces_of_files(self.source, wanted, files)

    def blocks(self) -> Any:
        """All records in blocks, which TensorFlow does not shard by file."""
        wanted, of_all = tf.constant(EVERYTHING.encode()), tf.constant(ALL_FILES, tf.int64)

        def read(block: Any) -> Any:
            return records(*ops.tfrfast_read_block_v2(self.source, wanted, of_all, block))

        return flat_map(parallel_map(steps_of_pieces(self._pieces(wanted)), read), emit_block)

    def records(self, sequence: Sequence) -> Any:
        """A sequence without a shuffle, record by record."""
        return _ended(_repeated(self._payloads(sequence), sequence).unbatch(), sequence)

    def batches(self, sequence: Sequence, symbolic: bool) -> Batches:
        """The batches of a sequence without a shuffle.

        With `symbolic`, checkpoints can hold positions alone, but batches are cut more slowly.
        """
        assert sequence.batch is not None
        size, is_full = sequence.batch.rows, sequence.batch.drop_remainder
        ends_with_epoch = sequence.batch.ends_with_epoch
        found = self._payloads(sequence) if self._skips_damage else self._addresses(sequence)
        if not ends_with_epoch:
            found = _repeated(found, sequence)
        # TensorFlow has no symbolic checkpoints of rebatch().
        again = found.unbatch().batch if symbolic else found.rebatch
        cut, rows = _ended(again(size, is_full), sequence), size if is_full else None

        def finished(dataset: Any) -> Any:
            return _repeated(dataset, sequence) if ends_with_epoch else dataset

        if self._skips_damage:  # so that batches are full, records are left out before they are cut
            return StringBatches(cut, rows, finished)
        return _FoundBatches(self.source, cut, rows, finished)

    def _payloads(self, sequence: Sequence) -> Any:
        wanted = tf.constant(sequence.of_one_epoch.encode())

        def read(_: Any, files: Any, block: Any) -> Any:
            return records(*ops.tfrfast_read_block_v2(self.source, wanted, files, block))

        each = steps(self._pieces(wanted), self.source, wanted, Keys(0, known=True))
        return flat_map(parallel_map(each, read), emit_block)

    def _addresses(self, sequence: Sequence) -> Any:
        """Where the records are, for a few MiB at a time."""
        wanted = tf.constant(sequence.of_one_epoch.encode())

        def find(files: Any, begin: Any, end: Any) -> Any:
            head, error, tail = ops.tfrfast_find_records(self.source, wanted, files, begin, end)
            some = [None, _ADDRESS]
            return (
                tf.ensure_shape(head, some),
                tf.ensure_shape(error, []),
                tf.ensure_shape(tail, some),
            )

        length = 1 if self._is_compressed else _BLOCKS_AT_ONCE
        each = runs(self._pieces(wanted), self.source, wanted, length)
        return flat_map(parallel_map(each, find, calls=_PARALLEL_FINDS), emit_block)


class _FoundBatches(Batches):
    """Batches of records that have been found, and are read by their addresses."""

    def __init__(
        self, source: Any, addresses: Any, rows: int | None, finished: Callable[[Any], Any]
    ) -> None:
        super().__init__(rows)
        self._source, self._addresses, self._finished = source, addresses, finished
        self._is_full = tf.constant(int(rows is not None), tf.int64)

    @property
    def known_by(self) -> Any:
        return self._addresses

    def read(self, *batch: Any) -> tuple[Any, Any, Any]:
        return ops.tfrfast_read_records(self._source, self._is_full, *batch)

    def decode(self, features: TensorFeatures, *batch: Any) -> tuple[Any, Any, Any]:
        return ops.tfrfast_decode_records(
            self._source, self._is_full, *batch, features.text, column_types=features.column_types
        )

    def finished(self, dataset: Any) -> Any:
        return self._finished(dataset)


def _repeated(dataset: Any, sequence: Sequence) -> Any:
    return dataset.repeat(sequence.epochs) if sequence.repeated else dataset


def _ended(dataset: Any, sequence: Sequence) -> Any:
    """Ends after the elements that were asked for. If there is no end, its length says so."""
    if sequence.batch is not None and sequence.batch.ends_with_epoch:  # and is repeated later
        sequence = dataclasses.replace(sequence, epochs=1)
    if sequence.epochs is None:
        return with_length(dataset, None)
    return dataset if sequence.records.is_open else dataset.take(sequence.length)
