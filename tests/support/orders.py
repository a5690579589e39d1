"""Orders by the arguments `shuffle` and `seed`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

import tfrfast as tfr


def order_of(shuffle: bool | tfr.BlockShuffle, seed: int = 0, indices: Any = None) -> Any:
    if isinstance(shuffle, tfr.BlockShuffle):
        shape = shuffle.block_records, shuffle.window_blocks, shuffle.streams
        return tfr.BlockShuffle(*shape, seed=seed, indices=indices)
    return tfr.Shuffle(seed, indices=indices) if shuffle else tfr.InOrder(indices=indices)


def shuffled(
    n: int, seed: int = 0, epoch: int = 0, first: int = 0, last: int | None = None
) -> npt.NDArray[np.int64]:
    """Returns the records at positions `first` to `last` (excluded) of a Shuffle of n records."""
    plan = tfr.Plan(tfr.Shuffle(seed), 1, num_records=n)
    return plan.records_at(epoch, first, n if last is None else last)
