"""What `stats()` tells after an epoch, on every road."""

from __future__ import annotations

from typing import Any


def assert_counted(stats: Any, records: int, batches: int) -> None:
    """Asserts that an epoch was counted: rows without padding, their bytes, and that one waited for the other."""
    assert (stats.records, stats.batches) == (records, batches), stats
    assert stats.bytes > 10 * records, stats
    assert stats.consumer_waited_s + stats.workers_waited_s > 0, stats
