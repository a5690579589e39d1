"""All records in their new order, from their buckets."""

from __future__ import annotations

from collections.abc import Iterator

from tfrfast import _native
from tfrfast.writing.writer import Writer


class SortedRows:
    """All records in their new order. Each bucket is loaded when it is reached."""

    def __init__(self, buckets: _native.ShuffleBuckets, counts: list[int]) -> None:
        self._buckets = buckets
        self._counts = counts
        self._bucket = 0
        self._row = 0
        self._loaded: _native.ShuffledBucket | None = None
        self._removed = 0

    def skip_to(self, position: int) -> None:
        while self._bucket < len(self._counts) and position >= self._counts[self._bucket]:
            position -= self._counts[self._bucket]
            self._bucket += 1
        self._row = position

    def write_to(
        self, writer: Writer, records: int, max_bytes: int
    ) -> Iterator[tuple[int, int, int]]:
        """Writes `records` records, or fewer at `max_bytes`. Yields each piece's totals."""
        while records > 0:
            end = min(self._counts[self._bucket], self._row + records)
            if end > self._row:
                if self._loaded is None:
                    self._loaded = self._buckets.take(self._bucket)
                wanted = end - self._row
                written, totals = self._loaded.write_rows(writer._core, self._row, end, max_bytes)
                self._row += written
                records -= written
                yield totals
                if written < wanted:
                    return
            if self._row == self._counts[self._bucket]:
                self._loaded = None
                self._bucket += 1
                self._row = 0

    def remove_used(self) -> None:
        """Removes the files of buckets whose records are all in complete shards."""
        for bucket in range(self._removed, self._bucket):
            self._buckets.remove(bucket)
        self._removed = self._bucket
