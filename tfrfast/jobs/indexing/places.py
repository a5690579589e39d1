"""A built index, and its place."""

from __future__ import annotations

import os
from typing import NamedTuple

from tfrfast import _native


class BuiltIndex(NamedTuple):
    """One shard's index: its place, whether it was built now, and the counts of its entries."""

    shard: str
    path: str
    was_built: bool
    num_records: int
    damage: int


def index_folder(shard: str, folder: str | os.PathLike[str] | None = None) -> str:
    """Returns the folder of a file's index: `folder`, or the folder beside the data folder."""
    if folder is not None:
        return os.fspath(folder)
    return _native.sibling_index_folder(os.fsencode(shard))


def compact(built: list[BuiltIndex]) -> None:
    """Merges the parts of each index into one part, without outdated entries."""
    for folder in dict.fromkeys(os.path.dirname(each.path) for each in built if each.path):
        _native.compact_index(os.fsencode(folder))
