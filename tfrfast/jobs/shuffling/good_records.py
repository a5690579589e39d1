"""The good records of damaged shards, for a shuffle that skips damage."""

from __future__ import annotations

import numpy as np

from tfrfast import _native
from tfrfast.jobs.shuffling.inputs import Inputs
from tfrfast.reader import Reader, Skipped, all_damage

_MAX_PIECE_BYTES = 16 << 20
_MAX_OBJECT_PIECE_BYTES = 64 << 20  # in several requests at once


class GoodRecords:
    """Deals good records to buckets, shard after shard.

    `skipped` lists the damage so far, and begins with the damage of an interrupted shuffle.
    """

    def __init__(
        self, buckets: _native.ShuffleBuckets, inputs: Inputs, skipped: list[Skipped]
    ) -> None:
        self._buckets = buckets
        self._inputs = inputs
        self._before = skipped
        self._path = ""
        self._reader: Reader | None = None

    def add_shard(
        self, number: int, offset: int, record: int, max_bytes: int
    ) -> tuple[int, int, bool]:
        """Like `IntactRecords.add_shard`."""
        reader = self._open(self._inputs.shards[number])
        shard = reader.shards[0]
        is_object = self._inputs.is_object(number)
        while record < len(reader) and max_bytes > 0:
            piece = min(max_bytes, _MAX_OBJECT_PIECE_BYTES if is_object else _MAX_PIECE_BYTES)
            end = int(np.searchsorted(shard.offsets, shard.offsets[record] + piece))
            self._buckets.add_batch(reader.read(range(record, end)))
            record = end
            reached = int(shard.offsets[end]) if end < len(reader) else self._inputs.sizes[number]
            max_bytes -= reached - offset
            offset = reached
        return offset, record, record == len(reader)

    @property
    def skipped(self) -> list[Skipped]:
        return all_damage(self._before, () if self._reader is None else self._reader.skipped)

    def _open(self, path: str) -> Reader:
        if self._reader is None or self._path != path:
            self._before = self.skipped
            # An old index would hide later damage of headers.
            self._path = path
            self._reader = Reader(
                path,
                on_corruption="skip",
                index="memory",
                progress=False,
                storage=self._inputs.storage,
            )
        return self._reader
