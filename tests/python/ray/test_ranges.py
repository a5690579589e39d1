"""Records of all shards are divided into ranges by their bytes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("tfrfast.ray", exc_type=ModuleNotFoundError)

from tfrfast.ray.ranges import ShardTable, cut


def table(shards: list[tuple[int, int]]) -> ShardTable:
    """Shards of (records, bytes of each record)."""
    records = np.array([count for count, _ in shards], np.int64)
    return ShardTable(records, records * np.array([size for _, size in shards], np.int64))


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(16, 1000)), max_size=12),
    st.integers(1, 40),
)
def test_every_record_is_in_one_range_and_every_range_in_its_shards(
    shards: list[tuple[int, int]], count: int
) -> None:
    some = table(shards)
    total = int(some.num_records.sum())
    ranges = cut(some, count)
    assert [number for first, last in ranges for number in range(first, last)] == list(range(total))
    assert all(first < last for first, last in ranges)
    assert len(ranges) <= count
    owner = np.repeat(np.arange(len(shards)), some.num_records)
    for first, last in ranges:
        touched = some.touched(first, last)
        assert (touched[0], touched[-1]) == (owner[first], owner[last - 1])


def test_ranges_have_about_as_many_bytes_each() -> None:
    some = table([(1000, 10), (10, 1000), (0, 5), (1, 10_000), (100, 100)])
    sizes = np.repeat([10, 1000, 5, 10_000, 100], some.num_records)
    for first, last in cut(some, 4):
        assert sizes[first:last].sum() == 10_000


def test_one_huge_shard_becomes_many_ranges_and_many_small_ones_share_one() -> None:
    assert cut(table([(100, 1)]), 4) == [(0, 25), (25, 50), (50, 75), (75, 100)]
    assert len(cut(table([(1, 7)] * 1000), 10)) == 10
    assert cut(table([(3, 1)]), 10) == [(0, 1), (1, 2), (2, 3)]
    assert cut(table([]), 2) == cut(table([(0, 1)]), 2) == []
