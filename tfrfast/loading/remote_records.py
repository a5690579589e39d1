"""The cost of an exact shuffle of records on a network."""

from __future__ import annotations

from typing import NamedTuple

from tfrfast import _native
from tfrfast.base.warning import warn
from tfrfast.errors import SlowPathWarning
from tfrfast.reader import Reader
from tfrfast.storage.disk_cache import DiskCache
from tfrfast.storage.schemes import is_url

# Records of this size are worth a request, and a data set with fewer records is too small to
# matter.
_WORTH_A_REQUEST_BYTES = 100_000
_MANY_RECORDS = 10_000
# The way in which batches are requested: see csrc/core/load/remote_ahead.cpp.
_TOGETHER_BYTES = 128 << 20
_TOGETHER_RECORDS = 1 << 18
_GAP_BYTES = 64 << 10
# The uncompressed bytes of a request for a record of a compressed shard.
_SPAN_BYTES = 1 << 20

_said = False


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


def warn_of_requests(reader: Reader, is_exact: bool, batch_size: int) -> None:
    """Warns once that an exact shuffle of small records makes a request for each record."""
    global _said
    if _said or not is_exact or not any(map(is_url, reader._paths)):
        return
    shards = [shard for shard in reader.shards if is_url(shard.path)]
    remote = RemoteRecords(
        sum(shard.num_records for shard in shards),
        sum(shard.num_bytes for shard in shards),
        sum(shard._stream_bytes for shard in shards),
        reader._options["storage"].cache,
    )
    if (cost := remote.cost("order=tfr.BlockShuffle(...)", "Reader", batch_size)) is not None:
        _said = True
        warn(cost, SlowPathWarning)
