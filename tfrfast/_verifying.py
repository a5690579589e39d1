"""Checks every CRC of every record of a reader."""

from __future__ import annotations

from collections.abc import Callable

from tfrfast.reader import Reader

_STEP_BYTES = 16 << 20


def count_good_records(reader: Reader, progress: Callable[[int, int], None] | None = None) -> int:
    """Reads everything. The reader must skip damage, and lists it in `skipped` afterwards.

    `progress` receives the bytes done and the bytes in all.
    """
    total = sum(shard.num_bytes for shard in reader.shards)
    starts = [0]
    for shard in reader.shards:
        starts.append(starts[-1] + shard.num_bytes)
    at = good = 0
    while at < len(reader):
        place = reader.locate(at)
        if progress:
            progress(starts[place.shard] + place.offset, total)
        at, newly_good = reader._core.verify_from(at, _STEP_BYTES)
        good += newly_good
    if progress:
        progress(total, total)
    return good
