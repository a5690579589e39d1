"""The good records of shards that may be damaged, for a shuffle that leaves the others out."""

from __future__ import annotations

import os

import numpy as np

from tfrfast import _native
from tfrfast.reader import Reader, Skipped

_MAX_PIECE_BYTES = 16 << 20


class GoodRecords:
    """Deals good records to buckets, shard after shard.

    `skipped` lists the damage met so far. It is given what an interrupted shuffle had met.
    """

    def __init__(self, buckets: _native.ShuffleBuckets, skipped: list[Skipped]) -> None:
        self._buckets = buckets
        self._before = set(skipped)
        self._path = ""
        self._reader: Reader | None = None

    def add_shard(
        self, path: bytes, offset: int, record: int, max_bytes: int
    ) -> tuple[int, int, bool]:
        """Like `ShuffleBuckets.add_shard`: (next offset, next record, whether the shard ended)."""
        reader = self._open(os.fsdecode(path))
        shard = reader.shards[0]
        while record < len(reader) and max_bytes > 0:
            piece = min(max_bytes, _MAX_PIECE_BYTES)
            end = int(np.searchsorted(shard.offsets, shard.offsets[record] + piece))
            self._buckets.add_batch(reader.read(range(record, end)))
            record = end
            reached = int(shard.offsets[end]) if end < len(reader) else os.path.getsize(path)
            max_bytes -= reached - offset
            offset = reached
        return offset, record, record == len(reader)

    @property
    def skipped(self) -> list[Skipped]:
        met = self._before | set(self._reader.skipped if self._reader else ())
        return sorted(met, key=lambda each: (each.path, each.begin, each.end))

    def _open(self, path: str) -> Reader:
        if self._reader is None or self._path != path:
            self._before = set(self.skipped)
            # An index from earlier would hide what has happened to the headers since.
            self._path = path
            self._reader = Reader(path, on_corruption="skip", index="memory", progress=False)
        return self._reader
