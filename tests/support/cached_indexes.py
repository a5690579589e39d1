"""Indexes in the user's cache: a file for each data folder."""

from __future__ import annotations

import os
from pathlib import Path

import tfrfast as tfr
from tfrfast import _native

#: Places in a file of one part with one shard, as in docs/index-format.md.
END, PART, ENTRY = 16, 64, 104
SECTIONS = ENTRY + 128


def cached_index(shard: str | Path) -> Path:
    """Opens a shard that has no index elsewhere. Returns the file of its index."""
    tfr.Reader(shard, on_corruption="skip").close()
    return Path(tfr._native.cached_index_path(os.fsencode(shard)))


def number_at(index: bytes | bytearray, at: int) -> int:
    return int.from_bytes(index[at : at + 8], "little")


def seal(index: bytearray) -> None:
    """Computes the checksums of the directory and the headers again."""

    def put_crc(at: int, begin: int, end: int) -> None:
        index[at : at + 4] = _native.crc32c(bytes(index[begin:end])).to_bytes(4, "little")

    put_crc(PART + 32, ENTRY, ENTRY + number_at(index, PART + 24))
    put_crc(PART + 36, PART, PART + 36)
    put_crc(60, 0, 60)
