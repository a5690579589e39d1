"""The records of a task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from tfrfast.base.arguments import Int64Array
from tfrfast.errors import StaleIndexError
from tfrfast.reader import Reader

__all__ = ["ChosenRecords", "ShardSizes", "cut_rows"]


class ShardSizes:
    """The first record of each of a reader's shards, and the bytes of records."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader._frames()
        shards = reader.shards
        self.starts = _starts([shard.num_records for shard in shards])
        self.sizes = [shard.num_bytes for shard in shards]
        self._byte_starts = _starts(self.sizes)

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

    def _lengths(self, shard: int) -> Int64Array:
        # `Shard.lengths` would stay in memory.
        return self.reader.shards[shard]._native_frames.offsets_and_lengths()[1]


def _starts(counts: Sequence[int]) -> Int64Array:
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])


class ChosenRecords:
    """Records of a reader by number, in order: a range, or an array.

    An unpickled copy opens only the shards of these records, without threads of its own. So its
    `numbers` differ: a range adds `base`. A copy may be pickled again, for example by an executor
    that hands tasks on.
    """

    def __init__(self, shards: ShardSizes, numbers: range | Int64Array) -> None:
        self._shards: ShardSizes | None = shards
        self._pickled: tuple[Any, ...] | None = None
        self.reader = shards.reader
        self.numbers = numbers
        self.base = 0

    def __reduce__(self) -> tuple[Any, ...]:
        if self._shards is None:
            assert self._pickled is not None
            return _opened, self._pickled
        starts, numbers = self._shards.starts, self.numbers
        used, moved, base = _needed(starts, numbers)
        names = [self.reader._paths[shard] for shard in used]
        facts = [(int(starts[s + 1] - starts[s]), self._shards.sizes[s]) for s in used]
        options = {**self.reader._options, "threads": 1, "progress": False}
        return _opened, (names, options, facts, moved, base)


def _needed(
    starts: Int64Array, numbers: range | Int64Array
) -> tuple[Sequence[int], range | Int64Array, int]:
    """Returns the shards of the records, and the records' numbers if only these shards are open."""
    if isinstance(numbers, range):
        first = int(np.searchsorted(starts, numbers.start, side="right")) - 1
        end = max(first, int(np.searchsorted(starts, numbers.stop, side="left")))
        base = int(starts[first])
        return range(first, end), range(numbers.start - base, numbers.stop - base), base
    holders = np.searchsorted(starts, numbers, side="right") - 1
    used, which = np.unique(holders, return_inverse=True)
    counts = starts[used + 1] - starts[used]
    moved: Int64Array = (numbers - starts[holders]) + (np.cumsum(counts) - counts)[which]
    return used.tolist(), moved, 0


def _opened(
    names: list[str],
    options: dict[str, Any],
    facts: list[tuple[int, int]],
    numbers: range | npt.NDArray[np.int64],
    base: int,
) -> ChosenRecords:
    rows = ChosenRecords.__new__(ChosenRecords)
    rows._shards = None
    rows._pickled = (names, options, facts, numbers, base)
    rows.reader = Reader(names, **options)
    rows.numbers = numbers
    rows.base = base
    shards = rows.reader.shards
    if len(shards) != len(facts):
        raise StaleIndexError(
            f"{names[0]!r} and so on are {len(shards)} shards here, and {len(facts)} where this "
            "job was begun. This machine sees other files."
        )
    for shard, (records, size) in zip(shards, facts, strict=True):
        if (shard.num_records, shard.num_bytes) != (records, size):
            raise StaleIndexError(
                f"{shard.path!r} has {shard.num_records} records in {shard.num_bytes} bytes here, "
                f"and {records} in {size} where this job was begun. It has changed since, or this "
                "machine sees another file.",
                path=shard.path,
            )
    return rows


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
