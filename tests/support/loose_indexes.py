"""Indexes of single shards."""

from __future__ import annotations

import os
from pathlib import Path

import tfrfast as tfr


def loose_index(shard: str | Path) -> Path:
    """Builds the index of one shard, which nobody has collected into the folder's index yet."""
    path, *_ = tfr._native.build_index(
        os.fsencode(shard), b"", False, tfr._native.IndexFolders(), lambda _: None
    )
    return Path(path)
