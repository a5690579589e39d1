"""The records that a pipeline gives: take, skip, shard, shuffle, repeat and batch on a source.

The grammar, to which the rules of a plan keep: any of take, skip and shard on records; one shuffle;
any of take, skip and shard on positions; repeats, which may also come before the shuffle, because
each epoch is shuffled by itself; one batch; or, without a repeat before it, take and skip of
batches, and then repeat.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tfrfast import _native
from tfrfast.order import BlockShuffle, InOrder, Shuffle


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
    #: The order of interleaved files, whose records are not shuffled. The seed shuffles the files.
    turns: _native.InterleavedOrder | None = None


@dataclass(frozen=True)
class Batched:
    rows: int
    drop_remainder: bool = False
    #: True if repeat came after batch: each epoch ends with a batch of its own.
    ends_with_epoch: bool = False


@dataclass(frozen=True)
class Sequence:
    records: range
    shuffle: SeededOrder | None = None
    positions: range | None = None  # of the shuffled records; None before a shuffle
    #: None: without end.
    epochs: int | None = 1
    repeated: bool = False
    batch: Batched | None = None

    def narrowed(self, method: str, *numbers: int) -> Sequence:
        """Returns the part that take(), skip() or shard() leaves."""
        if self.positions is None:
            return replace(self, records=part(self.records, method, *numbers))
        return replace(self, positions=part(self.positions, method, *numbers))

    def shuffled(self, shuffle: SeededOrder) -> Sequence:
        """Adds a shuffle. Each epoch has each record once, even if repeat() came first."""
        return replace(self, shuffle=shuffle, positions=range(len(self.records)))

    def repeat(self, count: int | None) -> Sequence:
        batch = self.batch and replace(self.batch, ends_with_epoch=True)
        times = None if count is None or count < 0 else count
        epochs = None if times is None or self.epochs is None else self.epochs * times
        if 0 in (times, self.epochs):
            epochs = 0
        return replace(self, epochs=epochs, repeated=True, batch=batch)

    def in_blocks_of(self, count: int) -> Sequence:
        """Returns the same records in blocks of `count` batches."""
        batch = self.batch
        if batch is None or count == 1:
            return self
        return replace(self, batch=replace(batch, rows=batch.rows * count, drop_remainder=False))

    def over(self, record_count: int) -> Sequence:
        """Returns the same calls on that many records, before a shuffle."""
        assert self.positions is None
        return replace(self, records=below(self.records, record_count))

    @property
    def length(self) -> int | None:
        """Returns the number of elements; None: without end."""
        size = len(self.records if self.positions is None else self.positions)
        if self.batch is None or self.batch.ends_with_epoch:
            return _times(self._elements_of(size), self.epochs)
        total = _times(size, self.epochs)
        return None if total is None else self._elements_of(total)

    def _elements_of(self, rows: int) -> int:
        if self.batch is None:
            return rows
        return rows // self.batch.rows if self.batch.drop_remainder else -(-rows // self.batch.rows)

    @property
    def _order(self) -> _native.Order:
        shuffle = self.shuffle
        if shuffle is not None and shuffle.turns is not None:
            return shuffle.turns
        order = InOrder() if shuffle is None else shuffle.blocks or Shuffle()
        return order._positions(len(self.records))

    def encode(self) -> bytes:
        """Returns the encoding for the ops."""
        shuffle, batch = self.shuffle, self.batch or Batched(0)
        positions = range(len(self.records)) if self.positions is None else self.positions
        return _native.encode_sequence(
            records=_numbers(self.records),
            order=self._order,
            positions=_numbers(positions),
            reshuffles=shuffle is not None and shuffle.reshuffles,
            epochs=-1 if self.epochs is None else self.epochs,
            batch_rows=batch.rows,
            batch_ends_with_epoch=batch.ends_with_epoch,
            drop_remainder=batch.drop_remainder,
        )


def below(numbers: range, end: int) -> range:
    """Returns the numbers below `end`."""
    return range(numbers.start, min(numbers.stop, end), numbers.step)


def part(numbers: range, method: str, *arguments: int) -> range:
    """Returns the part that take(), skip() or shard() leaves."""
    if method == "shard":
        count, index = arguments
        return numbers[index::count]
    (count,) = arguments
    if count < 0:
        return numbers if method == "take" else numbers[:0]
    return numbers[:count] if method == "take" else numbers[count:]


def _numbers(numbers: range) -> tuple[int, int, int]:
    return numbers.start, numbers.step, len(numbers)


def _times(size: int, epochs: int | None) -> int | None:
    if size == 0 or epochs is not None:
        return size * (epochs or 0)
    return None


#: The records of uncounted files.
EVERYTHING = Sequence(range(_native.MAX_RECORDS))
