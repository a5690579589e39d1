"""Indexes in the user's cache, which are files of their own."""

from __future__ import annotations

import os
from pathlib import Path

import tfrfast as tfr


def cached_index(shard: str | Path) -> Path:
    """The index of a shard that has none elsewhere, once it was opened."""
    tfr.Reader(shard, on_corruption="skip").close()
    return Path(tfr._native.cached_index_path(os.fsencode(shard)))
