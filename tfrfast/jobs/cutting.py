"""Cuts a job into parts of about the same number of bytes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import numpy as np

from tfrfast.base.arguments import Int64Array
from tfrfast.storage.schemes import is_url

__all__ = ["filled", "grouped", "part_bytes", "size_of"]

_SMALLEST = 8 << 20
_LARGEST = 256 << 20
# Enough parts that the last parts end at about the same time.
_PARTS_PER_WORKER = 8
# An object counts as this many bytes, because each question for a size would be a request.
_OBJECT = 64 << 20
# Opening a shard counts as this many bytes.
_OPENING = 1 << 18


def part_bytes(total: int, workers: int) -> int:
    """Returns the size of a part of a job of `total` bytes."""
    return min(max(total // (_PARTS_PER_WORKER * workers), _SMALLEST), _LARGEST)


def size_of(shard: str) -> int:
    """Returns the bytes of a file. The bytes of an object are guessed."""
    return _OBJECT if is_url(shard) else os.path.getsize(shard)


def filled(sizes: Int64Array, limit: int) -> Iterator[range]:
    """Yields runs of items of at most `limit` in all, or one larger item alone."""
    reached = np.concatenate([[0], np.cumsum(sizes)])
    first = 0
    while first < len(sizes):
        last = int(np.searchsorted(reached, reached[first] + limit, side="right")) - 1
        yield range(first, first := max(first + 1, last))


def grouped(
    shards: Sequence[str], sizes: Sequence[int], workers: int
) -> list[tuple[list[str], int]]:
    """Returns runs of shards of about equal work, or one larger shard alone, and their bytes."""
    target = part_bytes(sum(sizes) + _OPENING * len(shards), workers)
    groups: list[tuple[list[str], int]] = []
    left = 0
    for shard, size in zip(shards, sizes, strict=True):
        left -= size + _OPENING
        if left >= 0:
            group, held = groups[-1]
            group.append(shard)
            groups[-1] = group, held + size
        else:
            groups.append(([shard], size))
            left = target - size - _OPENING
    return groups
