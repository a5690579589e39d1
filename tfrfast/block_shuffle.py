"""A shuffle for storage that hates seeks."""

from __future__ import annotations

import dataclasses

import numpy as np

from tfrfast import _native
from tfrfast._base.arguments import integer

__all__ = ["BlockShuffle"]


@dataclasses.dataclass(frozen=True, slots=True)
class BlockShuffle:
    """Shuffle blocks of neighbouring records, for disks and networks that hate seeks.

    Like `shuffle=True` it is a bijection computed position by position, with a new order every
    epoch, no memory, and each record exactly once at any world size. But at any time only
    `streams * window_blocks` blocks of `block_records` neighbours are in use, each is read through
    before the next take its place, and no block is read by two workers if `world` divides
    `streams` (except where workers' shares meet in the last blocks of an epoch).

    Blocks are dealt in a random order to `streams`, which take turns record by record. Each stream
    mixes its blocks `window_blocks` at a time, every record of a window being equally likely at
    each of its places.

    - `block_records`: choose it so that a block is one good read: 1 MiB on a disk, 8 MiB or more
      on an object store.
    - `window_blocks`: more mix better and need more cache: a worker draws on
      `streams / world * window_blocks` blocks at a time.
    - `streams`: a multiple of every world size that will be used, and at least that. If `world`
      does not divide it, neighbouring workers share some streams and read their blocks twice.
    """

    block_records: int
    window_blocks: int
    streams: int = 64

    def __post_init__(self) -> None:
        for name, most in [("block_records", 2**31 - 1), ("window_blocks", 2**31 - 1)]:
            object.__setattr__(self, name, integer(name, getattr(self, name), 1, most))
        object.__setattr__(self, "streams", integer("streams", self.streams, 1, 2**16))


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
