"""An index that was built, and its place."""

from __future__ import annotations

import os
from typing import NamedTuple

from tfrfast import _native


class BuiltIndex(NamedTuple):
    """One shard's index: where it is, whether it had to be built, and what it lists."""

    shard: str
    path: str
    was_built: bool
    num_records: int
    damage: int


def index_folder(shard: str, folder: str | os.PathLike[str] | None = None) -> str:
    """Where the index of a file lies: `folder`, or that beside its data folder."""
    if folder is not None:
        return os.fspath(folder)
    return _native.sibling_index_folder(os.fsencode(shard))


def compact(built: list[BuiltIndex]) -> None:
    """Leaves one part in each of these indexes, without what no longer counts."""
    for folder in dict.fromkeys(os.path.dirname(each.path) for each in built if each.path):
        _native.compact_index(os.fsencode(folder))
