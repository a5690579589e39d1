"""What a Loader says about records on a network."""

from __future__ import annotations

import warnings

from tfrfast._remote.urls import is_url
from tfrfast.disk_cache import cache_limit
from tfrfast.errors import SlowPathWarning
from tfrfast.reader import Reader

# Records of this size are worth a request, and fewer of them are no matter.
_WORTH_A_REQUEST_BYTES = 100_000
_MANY_RECORDS = 10_000

_said = False


def warn_of_requests(reader: Reader, is_exact: bool) -> None:
    """Says once that an exact shuffle of small records asks the network for each of them."""
    global _said
    if _said or not is_exact or not any(map(is_url, reader._paths)):
        return
    shards = [shard for shard in reader.shards if is_url(shard.path)]
    records = sum(shard.num_records for shard in shards)
    total = sum(shard.num_bytes for shard in shards)
    size = total // max(records, 1)
    # What fits into a cache is asked for once, and with its neighbours.
    kept = min(cache_limit(reader._options["storage"].cache), total)
    records -= records * kept // max(total, 1)
    if records < _MANY_RECORDS or size >= _WORTH_A_REQUEST_BYTES:
        return
    _said = True
    warnings.warn(
        f"An exact shuffle of {records:,} records of {size:,} bytes from a network takes about "
        f"{records:,} requests an epoch. shuffle=tfr.BlockShuffle(...) reads neighbours together; "
        "or keep what comes on a disk, with cache=tfr.DiskCache(...) of the Reader.",
        SlowPathWarning,
        stacklevel=3,
    )
