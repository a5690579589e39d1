"""Orders by the arguments `shuffle` and `seed`."""

from __future__ import annotations

from typing import Any

import tfrfast as tfr


def order_of(shuffle: bool | tfr.BlockShuffle, seed: int = 0, indices: Any = None) -> Any:
    if isinstance(shuffle, tfr.BlockShuffle):
        shape = shuffle.block_records, shuffle.window_blocks, shuffle.streams
        return tfr.BlockShuffle(*shape, seed=seed, indices=indices)
    return tfr.Shuffle(seed, indices=indices) if shuffle else tfr.InOrder(indices=indices)
