"""An index that was built, and its place."""

from __future__ import annotations

import os
from typing import NamedTuple

from tfrfast import _native
from tfrfast.storage.remote.urls import is_url


class BuiltIndex(NamedTuple):
    """One shard's index: where it is, whether it had to be built, and what it lists."""

    shard: str
    path: str
    was_built: bool
    num_records: int
    damage: int


def index_path(shard: str, folder: str | os.PathLike[str] | None = None) -> str:
    """Where the index of `shard` goes, unless another shard of that name has the place already."""
    if folder is None and is_url(shard):
        return _native.cached_index_path(os.fsencode(shard))
    if folder is None:
        return _native.sibling_index_path(os.fsencode(shard))
    return _native.index_path_in(os.fsencode(folder), os.fsencode(shard))


def collected(built: list[BuiltIndex]) -> list[BuiltIndex]:
    """The same after each folder's loose indexes were collected into one."""
    for folder in dict.fromkeys(os.path.dirname(each.path) for each in built if each.path):
        _native.merge_indexes(os.fsencode(folder))
    return [each._replace(path=_path_now(each.path)) for each in built]


def _path_now(path: str) -> str:
    if not path or os.path.exists(path):
        return path
    return _native.folder_index_path(os.fsencode(os.path.dirname(path)))
