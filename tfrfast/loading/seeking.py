"""Warns of the cost of an exact shuffle if the storage is slow to read at random."""

from __future__ import annotations

import os

from tfrfast import _native
from tfrfast.base.warning import warn
from tfrfast.errors import SlowPathWarning
from tfrfast.reader import Reader
from tfrfast.storage.schemes import is_url

# The time of a read on a slow storage. With many reads at once, solid-state disks are faster, and
# disks of 3,000 operations a second take twice as long.
_SLOW_S = 150e-6
# A shuffled epoch is slow if it takes this many times as long as reading in order, and this many
# seconds more.
_MANY_TIMES = 4
_MUCH_S = 30.0
_PAGE_BYTES = 4096
_BLOCK_BYTES = 1 << 20
_said = False
_measured: set[str] = set()  # folders


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


def warn_of_seeks(reader: Reader, is_exact: bool) -> None:
    """Warns once that an exact shuffle is slow because of the storage."""
    global _said
    if _said or not is_exact or not len(reader) or reader._core.inflating_bytes():
        return
    shard = reader._core.describe_shard(reader._core.num_shards() // 2)
    size = shard["num_bytes"] // max(shard["num_records"], 1)
    cost = seek_cost(shard["path"], len(reader), size, "order=tfr.BlockShuffle({})")
    if cost is not None:
        _said = True
        warn(cost, SlowPathWarning)
