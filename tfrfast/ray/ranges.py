"""Divides the records of many shards into ranges of about the same size."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tfrfast.base.arguments import Int64Array

__all__ = ["ShardTable", "cut"]


@dataclass(frozen=True)
class ShardTable:
    """The numbers of records and bytes of each shard."""

    num_records: Int64Array
    num_bytes: Int64Array

    @cached_property
    def ends(self) -> Int64Array:
        """The number of the first record after each shard."""
        return np.cumsum(self.num_records)

    def touched(self, first: int, last: int) -> range:
        """Returns the shards that hold records `first` to `last` (excluded)."""
        begin = int(np.searchsorted(self.ends, first, side="right"))
        return range(begin, int(np.searchsorted(self.ends, last, side="left")) + 1)


def cut(table: ShardTable, count: int) -> list[tuple[int, int]]:
    """Returns at most `count` non-empty ranges (first, last) of about the same number of bytes.

    Ranges follow the order of records, not the ends of shards: a large shard becomes several
    ranges, and small shards share a range.
    """
    total = int(table.num_records.sum())
    if total == 0:
        return []
    bytes_before = np.concatenate([[0], np.cumsum(table.num_bytes)]).astype(np.float64)
    records_before = np.concatenate([[0], table.ends]).astype(np.float64)
    wanted = np.linspace(0, bytes_before[-1], count + 1)
    # Assumes that all records of a shard have one size.
    at = np.rint(np.interp(wanted, bytes_before, records_before)).astype(np.int64)
    at[0], at[-1] = 0, total
    at = np.unique(at)
    return list(zip(at[:-1].tolist(), at[1:].tolist(), strict=True))
