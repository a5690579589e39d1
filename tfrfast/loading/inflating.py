"""Warns of the cost of an exact shuffle of compressed shards."""

from __future__ import annotations

from tfrfast import _native
from tfrfast.base.sizes import format_bytes
from tfrfast.base.warning import warn
from tfrfast.errors import SlowPathWarning
from tfrfast.reader import Reader
from tfrfast.storage.disk_cache import DiskCache

# Reading one record inflates a span of this size.
_SPAN_BYTES = 1 << 20
# A warning needs a cost of at least this size, and of at least this multiple of the data.
_MUCH_BYTES = 4 << 30
_MANY_TIMES = 4

#: The text of `tfr.explain`.
INFLATES = (
    "about a MiB is inflated for each record: decompressed_cache=tfr.DiskCache(folder, limit) "
    "keeps the inflated bytes on a disk"
)
_said = False


def inflating_cost(
    records: int, stream_bytes: int, mirror: DiskCache | None, by_blocks: str, owner: str
) -> str | None:
    """Returns the cost in words, and the remedies; None if the cost does not matter.

    `stream_bytes` is the size of the compressed shards once they are inflated.
    """
    kept = max(_native.inflated_bytes(), mirror.limit if mirror else 0)
    inflated = _SPAN_BYTES * (records - records * min(kept, stream_bytes) // max(stream_bytes, 1))
    if inflated < max(_MUCH_BYTES, _MANY_TIMES * stream_bytes):
        return None
    return (
        f"An exact shuffle of {records:,} records in compressed shards inflates a MiB for each "
        f"record, {format_bytes(inflated)} an epoch: {inflated // stream_bytes:,} times the data. "
        "decompressed_cache=tfr.DiskCache(folder, limit) of the "
        f"{owner} keeps the inflated bytes, {format_bytes(stream_bytes)}, on a disk. {by_blocks} "
        "inflates each block once."
    )


def warn_of_inflating(reader: Reader, is_exact: bool) -> None:
    """Warns once that an exact shuffle inflates much more than the data."""
    global _said
    if _said or not is_exact or not (stream_bytes := reader._core.inflating_bytes()):
        return
    mirror = reader._options["storage"].inflated
    cost = inflating_cost(
        len(reader), stream_bytes, mirror, "order=tfr.BlockShuffle(...)", "Reader"
    )
    if cost is not None:
        _said = True
        warn(cost, SlowPathWarning)
