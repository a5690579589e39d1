"""The result of take, skip, shard, shuffle, repeat and batch on a source.

The grammar: any of take, skip and shard on records; one shuffle; any of take, skip and shard on
positions; repeats, which may also come before the shuffle, because each epoch is shuffled by
itself; one batch; or repeat after batch. A method returns None if its call does not fit, and plain
tf.data takes over.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Literal

from tfrfast import _native
from tfrfast.order import BlockShuffle, InOrder, Shuffle


@dataclass(frozen=True)
class Progression:
    """The numbers first, first + stride, ...: `count` numbers."""

    first: int
    stride: int
    count: int

    @property
    def is_open(self) -> bool:
        """True if the progression continues to the last record."""
        return self.first + self.stride * (self.count + 1) > _native.MAX_RECORDS

    def below(self, end: int) -> Progression:
        """Returns the numbers below `end`."""
        there = max(0, -(-(end - self.first) // self.stride))
        return dataclasses.replace(self, count=min(self.count, there))

    def take(self, count: int) -> Progression:
        kept = self.count if count < 0 else min(count, self.count)
        return dataclasses.replace(self, count=kept)

    def skip(self, count: int) -> Progression:
        skipped = self.count if count < 0 else min(count, self.count)
        return Progression(self.first + skipped * self.stride, self.stride, self.count - skipped)

    def shard(self, num_shards: int, index: int) -> Progression:
        count = max(0, -(-(self.count - index) // num_shards))
        return Progression(self.first + index * self.stride, self.stride * num_shards, count)


@dataclass(frozen=True)
class Turns:
    """The number of interleaved files, and the records of a block. The next file replaces a file
    that ends.
    """

    files: int
    file_records: tuple[int, ...]
    block_records: int = 1
    shuffles_files: bool = False


@dataclass(frozen=True)
class SeededOrder:
    """The order of an epoch, from a seed and, if it reshuffles, the epoch's number."""

    seed: int
    reshuffles: bool = True
    blocks: BlockShuffle | None = None
    #: A seed that the user chose: other processes can choose the same.
    seeded: bool = True
    #: True if all records were asked for, without the size of a buffer.
    whole: bool = False
    #: Files are interleaved, and records are not shuffled. The seed shuffles the files.
    turns: Turns | None = None


@dataclass(frozen=True)
class Batched:
    rows: int
    drop_remainder: bool = False
    #: True if repeat came after batch: each epoch ends with a batch of its own.
    ends_with_epoch: bool = False


@dataclass(frozen=True)
class Sequence:
    records: Progression
    shuffle: SeededOrder | None = None
    positions: Progression | None = None  # of the shuffled records; None before a shuffle
    #: None: without end.
    epochs: int | None = 1
    repeated: bool = False
    batch: Batched | None = None

    @property
    def epoch_size(self) -> int:
        return (self.positions or self.records).count

    def _narrowed(self, how: Literal["take", "skip", "shard"], *arguments: int) -> Sequence | None:
        if self.repeated or self.batch is not None:
            return None
        if self.positions is None:
            return dataclasses.replace(self, records=getattr(self.records, how)(*arguments))
        return dataclasses.replace(self, positions=getattr(self.positions, how)(*arguments))

    def take(self, count: int) -> Sequence | None:
        return self._narrowed("take", count)

    def skip(self, count: int) -> Sequence | None:
        return self._narrowed("skip", count)

    def shard(self, num_shards: int, index: int) -> Sequence | None:
        return self._narrowed("shard", num_shards, index)

    def shuffled(self, shuffle: SeededOrder) -> Sequence | None:
        """Adds a shuffle. Each epoch has each record once, even if repeat() came first."""
        if self.shuffle is not None or self.batch is not None:
            return None
        positions = Progression(0, 1, self.records.count)
        return dataclasses.replace(self, shuffle=shuffle, positions=positions)

    def in_turns(self, turns: Turns, of_files: SeededOrder | None) -> Sequence:
        """Returns the same calls on the records of interleaved files, which may be shuffled."""
        assert self.shuffle is None
        count = sum(turns.file_records)
        shuffle = of_files or SeededOrder(0, reshuffles=False)
        return dataclasses.replace(
            self,
            records=Progression(0, 1, count),
            shuffle=dataclasses.replace(shuffle, turns=turns),
            positions=self.records.below(count),
        )

    def repeat(self, count: int | None) -> Sequence | None:
        if self.repeated and self.batch is not None:
            return None
        batch = self.batch and dataclasses.replace(self.batch, ends_with_epoch=True)
        times = None if count is None or count < 0 else count
        epochs = None if times is None or self.epochs is None else self.epochs * times
        if 0 in (times, self.epochs):
            epochs = 0
        return dataclasses.replace(self, epochs=epochs, repeated=True, batch=batch)

    def batched(self, rows: int, drop_remainder: bool) -> Sequence | None:
        if self.batch is not None or rows < 1:
            return None
        return dataclasses.replace(self, batch=Batched(rows, drop_remainder))

    def over(self, record_count: int) -> Sequence:
        """Returns the same calls on that many records, before a shuffle."""
        assert self.positions is None
        return dataclasses.replace(self, records=self.records.below(record_count))

    @property
    def length(self) -> int | None:
        """Returns the number of elements; None: without end."""
        size = self.epoch_size
        if self.batch is None:
            return _times(size, self.epochs)
        if self.batch.ends_with_epoch:
            return _times(self._batches_in(size), self.epochs)
        total = _times(size, self.epochs)
        return None if total is None else self._batches_in(total)

    def _batches_in(self, rows: int) -> int:
        assert self.batch is not None
        if self.batch.drop_remainder:
            return rows // self.batch.rows
        return -(-rows // self.batch.rows)

    @property
    def _order(self) -> _native.Order:
        shuffle = self.shuffle
        if shuffle is not None and shuffle.turns is not None:
            turns = shuffle.turns
            return _native.InterleavedOrder(
                turns.file_records, turns.files, turns.block_records, turns.shuffles_files
            )
        order = InOrder() if shuffle is None else shuffle.blocks or Shuffle()
        return order._positions(self.records.count)

    def encode(self) -> bytes:
        """Returns the encoding for the ops."""
        shuffle, batch = self.shuffle, self.batch or Batched(0)
        records = self.records
        return _native.encode_sequence(
            records=dataclasses.astuple(records),
            order=self._order,
            positions=dataclasses.astuple(self.positions or Progression(0, 1, records.count)),
            reshuffles=shuffle is not None and shuffle.reshuffles,
            epochs=-1 if self.epochs is None else self.epochs,
            batch_rows=batch.rows,
            batch_ends_with_epoch=batch.ends_with_epoch,
            drop_remainder=batch.drop_remainder,
        )


def _times(size: int, epochs: int | None) -> int | None:
    if size == 0 or epochs is not None:
        return size * (epochs or 0)
    return None


#: The records of uncounted files.
EVERYTHING = Sequence(Progression(0, 1, _native.MAX_RECORDS))
