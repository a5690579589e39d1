"""From what users name to the list of shards they mean."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable

PathLike = str | bytes | os.PathLike[str] | os.PathLike[bytes]
Paths = PathLike | Iterable[PathLike]


def expand_paths(paths: Paths) -> list[str]:
    """The shards that `paths`, a path or glob or an iterable of either, names, in order.

    A path that exists is taken literally, brackets and all. What a glob finds is sorted so that
    shard 10 follows shard 9; an iterable keeps its order.
    """
    if isinstance(paths, (str, bytes, os.PathLike)):
        return _expand(paths)
    return [found for each in paths for found in _expand(each)]


def _expand(path: PathLike) -> list[str]:
    name = os.fsdecode(path)
    if "\0" in name:
        raise ValueError(f"A path cannot hold a null character: {name!r}.")
    if not glob.has_magic(name) or os.path.lexists(name):
        return [name]
    found = [each for each in glob.glob(name, recursive=True) if _may_be_shard(each)]
    if not found:
        raise FileNotFoundError(
            2, f"No shard matches the pattern {name!r}. Check the folder and the spelling", name
        )
    return sorted(found, key=_natural_key)


def _may_be_shard(name: str) -> bool:
    """False for folders, and for indexes that `build_index` keeps beside the data's folder."""
    is_index = name.endswith(".index") and os.path.dirname(name).endswith(".tfrfast")
    return not is_index and not os.path.isdir(name)


def _natural_key(name: str) -> list[tuple[int, int, str]]:
    """Digits compare as numbers; equal numbers of other widths, and all the rest, as text."""
    parts = re.split(r"([0-9]+)", name)
    return [(1, int(part), part) if part.isdecimal() else (0, 0, part) for part in parts]
