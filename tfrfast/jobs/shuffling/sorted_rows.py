"""All records in their new order, from their buckets."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence

from tfrfast import _native
from tfrfast.jobs.running import Advance
from tfrfast.writing.shard_set import Unpublished
from tfrfast.writing.writer import Writer

#: A new shard: its file's name, its output, and its records, payload bytes and content hash.
Written = tuple[str, int, int, int, int]


class SortedRows:
    """All records in their new order. Each bucket is loaded when it is reached."""

    def __init__(
        self, take: Callable[[int], _native.ShuffledBucket], counts: Sequence[int]
    ) -> None:
        self._take = take
        self._counts = counts
        self._bucket = 0
        self._row = 0
        self._loaded: _native.ShuffledBucket | None = None
        self._used = 0

    def skip_to(self, position: int) -> None:
        while self._bucket < len(self._counts) and position >= self._counts[self._bucket]:
            position -= self._counts[self._bucket]
            self._bucket += 1
        self._row = position

    def write_shard(
        self, unpublished: Unpublished, output: int, records: int, max_bytes: int, advance: Advance
    ) -> Written:
        """Writes a shard of `records` records, or fewer at `max_bytes`."""
        sums = [0, 0, 0]
        with unpublished.writer() as writer:
            for totals in self._write_to(writer, records, max_bytes):
                sums = [a + b for a, b in zip(sums, totals, strict=True)]
                advance(totals[1] + 16 * totals[0])
        return os.path.basename(writer.path), output, sums[0], sums[1], sums[2] % 2**64

    def _write_to(
        self, writer: Writer, records: int, max_bytes: int
    ) -> Iterator[tuple[int, int, int]]:
        """Yields each piece's totals."""
        while records > 0:
            end = min(self._counts[self._bucket], self._row + records)
            if end > self._row:
                if self._loaded is None:
                    self._loaded = self._take(self._bucket)
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

    def newly_used(self) -> range:
        """Returns the buckets whose records are all written, and were not at the last call."""
        begin, self._used = self._used, self._bucket
        return range(begin, self._used)
