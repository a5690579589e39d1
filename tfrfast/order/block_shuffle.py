"""A shuffle for storage where seeks are slow."""

from __future__ import annotations

from typing import SupportsIndex

import numpy as np

from tfrfast import _native
from tfrfast.base.arguments import IntegerArrayLike, integer, seed_number
from tfrfast.base.refused_arguments import explains_arguments
from tfrfast.order.in_order import InOrder
from tfrfast.order.order import PlainOrder, record_numbers
from tfrfast.order.shuffle import Shuffle

__all__ = ["BlockShuffle", "shuffled"]


class BlockShuffle(PlainOrder):
    """Shuffles blocks of neighbouring records, for disks and networks where seeks are slow.

    Like Shuffle, a bijection that is computed position by position. It takes no memory, has a new
    order every epoch, and gives each record exactly once at any world size. But only `streams *
    window_blocks` blocks of `block_records` neighbours are in use at a time. Each block is read to
    its end before the next block takes its place. If `world` divides `streams`, no block is read by
    two workers, except where workers' shares meet in the last blocks of an epoch.

    Blocks are dealt in a random order to `streams`, which take turns record by record. Each stream
    mixes its blocks `window_blocks` at a time. Every record of a window is equally likely at each
    place of the window.

    - `block_records`: the records of a block, which should be one good read: 1 MiB on a disk, 8 MiB
      or more on an object store.
    - `window_blocks`: the blocks of a window. More blocks mix better and need more cache. A worker
      draws on `streams / world * window_blocks` blocks at a time. From a URL, keep them below 128
      MiB, the most that is requested at a time. Then each block is one request.
    - `streams`: a multiple of every world size of the run. Otherwise neighbouring workers share
      some streams and read their blocks twice.
    - `seed`, `indices`: as in Shuffle.

    >>> order = tfr.BlockShuffle(block_records=100, window_blocks=8, streams=4)
    >>> plan = tfr.Plan(order, 4, num_records=10_000)
    >>> len(set(plan.indices(0, 0) // 100))  # each record comes from another block
    4
    """

    is_scattered = False

    @explains_arguments
    def __init__(
        self,
        block_records: SupportsIndex,
        window_blocks: SupportsIndex,
        streams: SupportsIndex = 8,
        *,
        seed: SupportsIndex = 0,
        indices: IntegerArrayLike | None = None,
    ) -> None:
        self._settle(
            block_records=integer("block_records", block_records, 1, 2**31 - 1),
            window_blocks=integer("window_blocks", window_blocks, 1, 2**31 - 1),
            streams=integer("streams", streams, 1, 2**16),
            seed=seed_number(seed),
            indices=record_numbers(indices),
        )

    block_records: int
    window_blocks: int
    streams: int

    def _positions(self, count: int) -> _native.Order:
        return _native.BlockShuffle(count, self.block_records, self.window_blocks, self.streams)


def shuffled(shuffle: object) -> PlainOrder:
    """Returns the order for `shuffle`, with the seed and indices of the caller."""
    if isinstance(shuffle, bool | np.bool_):
        return Shuffle() if shuffle else InOrder()
    if not isinstance(shuffle, BlockShuffle):
        raise TypeError(
            f"shuffle must be True, False or a BlockShuffle, not {shuffle!r}: "
            "there is no buffer whose size could be given."
        )
    if shuffle.seed or shuffle.indices is not None:
        raise ValueError(f"{shuffle!r} gets its seed here: leave its own seed and indices out.")
    return shuffle
