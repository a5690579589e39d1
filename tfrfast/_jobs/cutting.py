"""Cuts a job into parts of about the same number of bytes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from tfrfast._remote.urls import is_url

__all__ = ["grouped", "part_bytes", "size_of"]

_SMALLEST = 8 << 20
_LARGEST = 256 << 20
# So that the last parts end at about the same time.
_PARTS_PER_WORKER = 8
# How much reading an object counts, where asking for its size would be a request each.
_OBJECT = 64 << 20


def part_bytes(total: int, workers: int) -> int:
    """How large a part of a job of `total` bytes should be."""
    return min(max(total // (_PARTS_PER_WORKER * workers), _SMALLEST), _LARGEST)


def size_of(shard: str) -> int:
    """Bytes of a file. An object's are guessed."""
    return _OBJECT if is_url(shard) else os.path.getsize(shard)


def grouped(shards: Iterable[str], sizes: Sequence[int], target: int) -> list[list[str]]:
    """Runs of shards that have about `target` bytes, or are one larger shard."""
    groups: list[list[str]] = []
    held = target
    for shard, size in zip(shards, sizes, strict=True):
        if held + size > target:
            groups.append([])
            held = 0
        groups[-1].append(shard)
        held += size
    return groups
