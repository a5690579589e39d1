"""What makes an exact shuffle slow: requests to a network, inflating, and slow storage."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple

from tfrfast import _native
from tfrfast.base.sizes import format_bytes
from tfrfast.base.warning import warn
from tfrfast.errors import SlowPathWarning
from tfrfast.order import Plan
from tfrfast.reader import Reader
from tfrfast.storage.disk_cache import DiskCache
from tfrfast.storage.schemes import is_url

__all__ = ["INFLATES", "RemoteRecords", "inflating_cost", "seek_cost", "warn_of_costs"]

# Reading one record of a compressed shard requests, or inflates, a span of this size.
_SPAN_BYTES = 1 << 20
# A cost matters if it is this many times the cost of reading in order, and as much as below.
_MANY_TIMES = 4

# Records of this size are worth a request, and a data set with fewer records is too small to
# matter.
_WORTH_A_REQUEST_BYTES = 100_000
_MANY_RECORDS = 10_000
# The way in which batches are requested: see csrc/core/load/remote_ahead.cpp.
_TOGETHER_BYTES = 128 << 20
_TOGETHER_RECORDS = 1 << 18
_GAP_BYTES = 64 << 10

_MUCH_INFLATED_BYTES = 4 << 30
#: The text of `tfr.explain`.
INFLATES = (
    "about a MiB is inflated for each record: decompressed_cache=tfr.DiskCache(folder, limit) "
    "keeps the inflated bytes on a disk"
)

# The time of a read on a slow storage. With many reads at once, solid-state disks are faster, and
# disks of 3,000 operations a second take twice as long.
_SLOW_S = 150e-6
_MUCH_S = 30.0
_PAGE_BYTES = 4096
_BLOCK_BYTES = 1 << 20
_measured: set[str] = set()  # folders


def warn_of_costs(reader: Reader, plan: Plan) -> None:
    """Warns of what makes an exact shuffle of the reader's records slow, once of each cost."""
    if not plan.order.is_scattered:
        return
    for cost_of in (_cost_of_requests, _cost_of_inflating, _cost_of_seeks):
        if cost_of not in _said and (cost := cost_of(reader, plan.batch_size or 1)) is not None:
            _said.add(cost_of)
            warn(cost, SlowPathWarning)


_said: set[Callable[[Reader, int], str | None]] = set()


class RemoteRecords(NamedTuple):
    """Records on a network, and the cache of this machine that may hold them."""

    records: int
    file_bytes: int
    stream_bytes: int  # uncompressed
    cache: DiskCache | None

    def cost(self, by_blocks: str, owner: str, batch_size: int = 1) -> str | None:
        """Returns the cost in words, and the remedy; None if the cost does not matter."""
        is_compressed = self.stream_bytes != self.file_bytes
        size = self.stream_bytes // max(self.records, 1)
        # Records that fit into a cache are requested once, and with their neighbours.
        asked = _not_kept(self.records, self.cache.limit if self.cache else 0, self.file_bytes)
        if is_compressed:
            asked = _not_kept(asked, _native.inflated_bytes(), self.stream_bytes)
        else:
            asked = _shared(asked, size, batch_size)
        worth = _SPAN_BYTES if is_compressed else _WORTH_A_REQUEST_BYTES
        if asked < _MANY_RECORDS or size >= worth:
            return None
        each = ", each for about a MiB that was compressed" if is_compressed else ""
        return (
            f"An exact shuffle of {self.records:,} records of {size:,} bytes from a network takes "
            f"about {asked:,} requests an epoch{each}. {by_blocks} reads neighbours together; or "
            f"keep the bytes on a disk, with cache=tfr.DiskCache(...) of the {owner}."
        )


def _not_kept(records: int, kept_bytes: int, all_bytes: int) -> int:
    return records - records * min(kept_bytes, all_bytes) // max(all_bytes, 1)


def _shared(records: int, size: int, batch_size: int) -> int:
    """The number of requests for `records` in random order. Neighbours that are announced together
    share a request.
    """
    if records == 0:
        return 0
    size = max(size, 1)
    near = _GAP_BYTES // size + 1

    def expected(together: int) -> tuple[float, float]:
        """Returns the number of requests for `together` random records, and of records that these
        requests cover.
        """
        share = min(1.0, together / records)
        alone = (1 - share) ** near  # the chance that no other record is so near
        return together * alone, together * (1 - alone * (1 + near * share)) / share

    together = min(records, _TOGETHER_BYTES // size, _TOGETHER_RECORDS)
    if together > batch_size:
        requests, covered = expected(together)
        apart, _ = expected(batch_size)
        if requests * 2 <= apart * together / batch_size and covered * 2 <= together * 3:
            return int(records / together * requests)
    batch_size = min(batch_size, records)
    return int(records / batch_size * expected(batch_size)[0])


def _cost_of_requests(reader: Reader, batch_size: int) -> str | None:
    if not any(map(is_url, reader._paths)):
        return None
    shards = [shard for shard in reader.shards if is_url(shard.path)]
    remote = RemoteRecords(
        sum(shard.num_records for shard in shards),
        sum(shard.num_bytes for shard in shards),
        sum(shard._stream_bytes for shard in shards),
        reader._options["storage"].cache,
    )
    return remote.cost("order=tfr.BlockShuffle(...)", "Reader", batch_size)


def inflating_cost(
    records: int, stream_bytes: int, mirror: DiskCache | None, by_blocks: str, owner: str
) -> str | None:
    """Returns the cost in words, and the remedies; None if the cost does not matter.

    `stream_bytes` is the size of the compressed shards once they are inflated.
    """
    kept = max(_native.inflated_bytes(), mirror.limit if mirror else 0)
    inflated = _SPAN_BYTES * _not_kept(records, kept, stream_bytes)
    if inflated < max(_MUCH_INFLATED_BYTES, _MANY_TIMES * stream_bytes):
        return None
    return (
        f"An exact shuffle of {records:,} records in compressed shards inflates a MiB for each "
        f"record, {format_bytes(inflated)} an epoch: {inflated // stream_bytes:,} times the data. "
        "decompressed_cache=tfr.DiskCache(folder, limit) of the "
        f"{owner} keeps the inflated bytes, {format_bytes(stream_bytes)}, on a disk. {by_blocks} "
        "inflates each block once."
    )


def _cost_of_inflating(reader: Reader, batch_size: int) -> str | None:
    if not (stream_bytes := reader._core.inflating_bytes()):
        return None
    mirror = reader._options["storage"].inflated
    return inflating_cost(
        len(reader), stream_bytes, mirror, "order=tfr.BlockShuffle(...)", "Reader"
    )


def seek_cost(path: str, records: int, size: int, by_blocks: str) -> str | None:
    """Measures reads of a shard, once for each folder. Returns the cost of an exact shuffle in
    words, and the remedies; None if the cost does not matter, or the shard is in memory.

    `size` is the mean size of a record. `by_blocks` is a format with `{}` for BlockShuffle's
    arguments.
    """
    folder = os.path.dirname(path)
    if size == 0 or is_url(path) or folder in _measured:
        return None
    costs = _native.read_costs(os.fsencode(path))
    if costs is None:
        return None
    _measured.add(folder)
    random_s, in_order_s_per_mib = costs
    in_order_s = records * size / (1 << 20) * in_order_s_per_mib
    # The system keeps whole pages.
    shuffled_s = min(records, records * size // _PAGE_BYTES) * random_s + in_order_s
    if random_s < _SLOW_S or shuffled_s < max(_MANY_TIMES * in_order_s, in_order_s + _MUCH_S):
        return None
    blocks = by_blocks.format(f"{max(1, _BLOCK_BYTES // size)}, 8")
    return (
        f"An exact shuffle of {records:,} records of {size:,} bytes takes about "
        f"{shuffled_s:,.0f} s an epoch until they are in memory, and reading them in order "
        f"{max(in_order_s, 1):,.0f} s: each read at random takes {1e3 * random_s:.2g} ms from "
        f"the storage of {path!r}. {blocks} reads neighbours together; or shuffle the "
        "shards once with `tfrfast shuffle`, and read them in order."
    )


def _cost_of_seeks(reader: Reader, batch_size: int) -> str | None:
    if not len(reader) or reader._core.inflating_bytes():
        return None
    shard = reader._core.describe_shard(reader._core.num_shards() // 2)
    size = shard["num_bytes"] // max(shard["num_records"], 1)
    return seek_cost(shard["path"], len(reader), size, "order=tfr.BlockShuffle({})")
