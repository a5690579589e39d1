"""The records of a task."""

from __future__ import annotations

import pickle
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from tfrfast.base.arguments import Int64Array
from tfrfast.errors import StaleIndexError
from tfrfast.jobs.running import Advance
from tfrfast.reader import Reader

__all__ = ["ChosenRecords", "OfRecords", "ShardSizes", "cut_rows"]

# The readers that a process keeps open for its next tasks.
_KEPT_READERS = 2


class ShardSizes:
    """The first record of each of a reader's shards, and the bytes of records.

    Records that a reader makes from parts, such as steps, lie anywhere, and count as one shard.
    """

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self._facts = _facts_of(reader)
        counts = [records for records, _ in self._facts]
        self.sizes = [size for _, size in self._facts]
        if reader._makes_records:
            counts, self.sizes = [len(reader)], [sum(self.sizes)]
        self.starts = _starts(counts)
        self._byte_starts = _starts(self.sizes)
        #: How other processes open the shards.
        self.names = reader._absolute_paths()
        self.options = {**reader._options, "threads": 1, "progress": False}
        self._plan = secrets.token_hex(8)

    def bytes_of(self, numbers: range) -> int:
        """Returns the bytes of a range of records. The bytes of adjoining ranges add up."""
        ends = np.interp([numbers.start, numbers.stop], self.starts, self._byte_starts)
        return int(ends[1]) - int(ends[0])

    def lengths_of(self, numbers: Int64Array) -> Int64Array:
        """Returns the bytes of each record. Reads only the indexes."""
        if len(numbers) > self.starts[-1] // 8:
            every: Int64Array = np.empty(self.starts[-1], np.int64)
            for shard, (first, end) in enumerate(pairwise(self.starts)):
                every[first:end] = self._lengths(shard)
            return every[numbers]
        holders = np.searchsorted(self.starts, numbers, side="right") - 1
        lengths: Int64Array = np.empty(len(numbers), np.int64)
        order = np.argsort(holders, kind="stable")
        used, firsts = np.unique(holders[order], return_index=True)
        for shard, rows in zip(used, np.split(order, firsts)[1:], strict=True):
            lengths[rows] = self._lengths(shard)[numbers[rows] - self.starts[shard]]
        return lengths

    def holders_of(self, numbers: range) -> slice:
        """Returns the places of the shards that hold a range of records."""
        first = int(np.searchsorted(self.starts, numbers.start, side="right")) - 1
        return slice(first, max(first, int(np.searchsorted(self.starts, numbers.stop))))

    def divided(self, count: int) -> list[range]:
        """Returns at most `count` non-empty ranges of about the same number of bytes.

        Ranges follow the order of records, not the ends of shards: a large shard becomes several
        ranges, and small shards share a range.
        """
        wanted = np.linspace(0, self._byte_starts[-1], count + 1)
        # Assumes that all records of a shard have one size.
        at = np.rint(np.interp(wanted, self._byte_starts, self.starts)).astype(np.int64)
        at[0], at[-1] = 0, self.starts[-1]
        return [range(first, end) for first, end in pairwise(np.unique(at).tolist())]

    def pickled(self, numbers: range | Int64Array) -> tuple[bytes, range | Int64Array, int]:
        """Returns a reader of only the shards that these records need, pickled, and the numbers of
        the records there. A range of numbers adds the last value.
        """
        if self.reader._makes_records:
            return self._pickled_reader, numbers, 0
        used: Sequence[int]
        starts, base = self.starts, 0
        if isinstance(numbers, range):
            used = range(len(self.names))[self.holders_of(numbers)]
            base = int(starts[used.start])
            moved: range | Int64Array = range(numbers.start - base, numbers.stop - base)
        else:
            holders = np.searchsorted(starts, numbers, side="right") - 1
            every, which = np.unique(holders, return_inverse=True)
            counts = starts[every + 1] - starts[every]
            moved = (numbers - starts[holders]) + (np.cumsum(counts) - counts)[which]
            used = every.tolist()
        names = [self.names[shard] for shard in used]
        facts = [self._facts[shard] for shard in used]
        return pickle.dumps((self._plan, (names, self.options), facts)), moved, base

    @cached_property
    def _pickled_reader(self) -> bytes:
        return pickle.dumps((self._plan, self.reader, self._facts))

    def _lengths(self, shard: int) -> Int64Array:
        # `Shard.lengths` would stay in memory.
        return self.reader.shards[shard]._native_frames.offsets_and_lengths()[1]


def _facts_of(reader: Reader) -> list[tuple[int, int]]:
    return [(shard.num_records, shard.num_bytes) for shard in reader.shards]


def _starts(counts: Sequence[int]) -> Int64Array:
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])


class ChosenRecords:
    """Records of a reader by number, in order: a range, or an array.

    An unpickled copy opens only the shards of these records, without threads of its own. So its
    `numbers` differ: a range adds `base`. A copy may be pickled again, for example by an executor
    that hands tasks on. `without` are records of a range that are left out, by their place in it.
    """

    def __init__(
        self,
        shards: ShardSizes,
        numbers: range | Int64Array,
        without: Int64Array | None = None,
    ) -> None:
        self._shards: ShardSizes | None = shards
        self._pickled: tuple[Any, ...] = ()
        self.numbers = numbers
        self.base = 0
        self._without = without

    def __len__(self) -> int:
        return len(self.numbers)

    @cached_property
    def reader(self) -> Reader:
        """A copy opens its reader at the first use, because an error while a task is unpickled ends
        the process of an executor.
        """
        if self._shards is not None:
            return self._shards.reader
        pickled = self._pickled[0]
        # Shards of a deletion are replaced, and must not stay open.
        return _kept_reader(pickled) if self._without is None else _reader_of(pickled)

    def pieces(self, num_bytes: int, advance: Advance) -> Iterator[Int64Array]:
        """Yields the numbers of about so many bytes of records at a time. Tells of each piece
        afterwards.
        """
        numbers, size = self.numbers, self.reader._records_within(num_bytes)
        for first in range(0, len(numbers), size):
            some = numbers[first : first + size]
            if isinstance(some, range):
                piece: Int64Array = np.arange(some.start, some.stop)
                if self._without is not None:
                    begin, end = np.searchsorted(self._without, [first, first + size])
                    piece = np.delete(piece, self._without[begin:end] - first)
                yield piece
            else:
                yield some
            advance(len(some))

    def __reduce__(self) -> tuple[Any, ...]:
        if self._shards is None:
            return _copy, self._pickled
        return _copy, (*self._shards.pickled(self.numbers), self._without)


@dataclass
class OfRecords:
    """A task whose amount of work is the number of its records."""

    rows: ChosenRecords

    @property
    def amount(self) -> int:
        return len(self.rows)


def _copy(
    pickled: bytes, numbers: range | Int64Array, base: int, without: Int64Array | None
) -> ChosenRecords:
    rows = ChosenRecords.__new__(ChosenRecords)
    rows._shards = None
    rows._pickled = (pickled, numbers, base, without)
    rows.numbers = numbers
    rows.base = base
    rows._without = without
    return rows


def _reader_of(pickled: bytes) -> Reader:
    _, opened, facts = pickle.loads(pickled)
    if not isinstance(opened, Reader):
        names, options = opened
        opened = Reader(names, **options)
    shards = opened.shards
    if len(shards) != len(facts):
        raise StaleIndexError(
            f"{opened._paths[0]!r} and so on are {len(shards)} shards here, and {len(facts)} where "
            "this job was begun. This machine sees other files."
        )
    for shard, (records, size) in zip(shards, facts, strict=True):
        if (shard.num_records, shard.num_bytes) != (records, size):
            raise StaleIndexError(
                f"{shard.path!r} has {shard.num_records} records in {shard.num_bytes} bytes here, "
                f"and {records} in {size} where this job was begun. It has changed since, or this "
                "machine sees another file.",
                path=shard.path,
            )
    return opened


@lru_cache(_KEPT_READERS)
def _kept_reader(pickled: bytes) -> Reader:
    """Returns a reader, which later tasks of the same job share in this process."""
    return _reader_of(pickled)


def cut_rows(shards: ShardSizes, target: int) -> Iterator[range]:
    """Returns all records in ranges of about `target` bytes. Only larger shards are divided."""
    begin = held = 0
    starts = shards.starts.tolist()
    for size, first, end in zip(shards.sizes, starts, starts[1:], strict=False):
        if held + size > target and begin < first:
            yield range(begin, first)
            begin = first
            held = 0
        pieces = min(-(-size // target), end - first)
        for piece in range(pieces if pieces > 1 else 0):
            stop = first + (end - first) * (piece + 1) // pieces
            yield range(begin, stop)
            begin = stop
        held += size if pieces <= 1 else 0
    if begin < starts[-1]:
        yield range(begin, starts[-1])
