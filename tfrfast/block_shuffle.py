"""A shuffle for storage where seeks are slow."""

from __future__ import annotations

import dataclasses

import numpy as np

from tfrfast import _native
from tfrfast._base.arguments import integer

__all__ = ["BlockShuffle"]


@dataclasses.dataclass(frozen=True, slots=True)
class BlockShuffle:
    """Shuffles blocks of neighbouring records, for disks and networks where seeks are slow.

    Like `shuffle=True`, it is a bijection computed position by position. It takes no memory, has a
    new order every epoch, and gives each record exactly once at any world size. But only
    `streams * window_blocks` blocks of `block_records` neighbours are in use at a time, and each is
    read to its end before the next takes its place. If `world` divides `streams`, no block is read
    by two workers, except where workers' shares meet in the last blocks of an epoch.

    Blocks are dealt in a random order to `streams`, which take turns record by record. Each stream
    mixes its blocks `window_blocks` at a time. Every record of a window is equally likely at each
    of its places.

    - `block_records`: choose it so that a block is one good read: 1 MiB on a disk, 8 MiB or more
      on an object store.
    - `window_blocks`: more of them mix better and need more cache. A worker draws on
      `streams / world * window_blocks` blocks at a time. From a URL, let them be at most 128 MiB:
      so much is asked for at a time, and each block is one request then.
    - `streams`: a multiple of every world size that will be used. If `world` does not divide it,
      neighbouring workers share some streams and read their blocks twice.

    >>> shuffle = tfr.BlockShuffle(block_records=100, window_blocks=8, streams=4)
    >>> plan = tfr.Plan(10_000, batch_size=4, shuffle=shuffle)
    >>> len(set(plan.indices(0, 0) // 100))  # each record comes from another block
    4
    """

    block_records: int
    window_blocks: int
    streams: int = 8

    def __post_init__(self) -> None:
        maxima = {"block_records": 2**31 - 1, "window_blocks": 2**31 - 1, "streams": 2**16}
        for name, maximum in maxima.items():
            object.__setattr__(self, name, integer(name, getattr(self, name), 1, maximum))


def checked_shuffle(shuffle: object) -> bool | BlockShuffle:
    if isinstance(shuffle, BlockShuffle):
        return shuffle
    if isinstance(shuffle, bool | np.bool_):
        return bool(shuffle)
    raise TypeError(
        f"shuffle must be True, False or a BlockShuffle, not {shuffle!r}: "
        "there is no buffer whose size could be given."
    )


def order_of(shuffle: bool | BlockShuffle, num_records: int) -> _native.Order:
    if isinstance(shuffle, BlockShuffle):
        return _native.BlockOrder(num_records, *dataclasses.astuple(shuffle))
    return _native.ExactOrder(num_records) if shuffle else _native.GivenOrder(num_records)
