"""Indexes of files, built beside the data."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from tfrfast import _native
from tfrfast.base.warning import core_warnings
from tfrfast.jobs.cutting import grouped, size_of
from tfrfast.jobs.indexing.places import BuiltIndex, compact, index_folder
from tfrfast.jobs.running import Advance, Workers
from tfrfast.storage.paths import written_file


def build(
    shards: list[str], workers: Workers, folder: str | os.PathLike[str] | None, force: bool
) -> list[BuiltIndex]:
    """Builds the missing indexes, or all indexes."""
    into = b"" if folder is None else written_file(folder)
    kept_in = _places(shards, folder) if workers.executor is not None else set()
    before = _states_in(kept_in)
    with core_warnings():
        tasks = _plan(shards, into, force, workers.count)
        built = [each for part in workers.run("Indexing", tasks) for each in part]
        # A task that an executor runs again finds the index of its first run, and takes it for an
        # older index.
        new = {place for place, _ in _states_in(kept_in).items() - before.items()}
        compact(built)
        return [
            each._replace(was_built=each.was_built or _place(each.shard, folder) in new)
            for each in built
        ]


def _plan(shards: list[str], folder: bytes, force: bool, workers: int) -> list[_Build]:
    """Returns the tasks. One task builds each shard's index."""
    sizes = [size_of(shard) for shard in shards]
    folders = _native.IndexFolders()
    return [
        _Build(group, size, folder, force, folders)
        for group, size in grouped(shards, sizes, workers)
    ]


@dataclass
class _Build:
    """Builds the indexes of some files, and adds each to its folder's index."""

    shards: list[str]
    amount: int
    folder: bytes
    force: bool
    #: Folders that this process has read; None in another process.
    folders: _native.IndexFolders | None

    def __reduce__(self) -> tuple[Any, ...]:
        return _Build, (self.shards, self.amount, self.folder, self.force, None)

    def run(self, advance: Advance) -> list[BuiltIndex]:
        folders = self.folders or _native.IndexFolders()
        return [
            BuiltIndex(
                shard,
                *_native.build_index(os.fsencode(shard), self.folder, self.force, folders, advance),
            )
            for shard in self.shards
        ]


def _places(shards: list[str], folder: str | os.PathLike[str] | None) -> set[str]:
    return {index_folder(shard, folder) for shard in shards}


def _place(shard: str, folder: str | os.PathLike[str] | None) -> tuple[str, bytes]:
    return index_folder(shard, folder), os.fsencode(os.path.basename(shard))


def _states_in(folders: set[str]) -> dict[tuple[str, bytes], frozenset[tuple[int, int]]]:
    """Returns the entries of the folders' indexes, by shard name, for all data folders."""
    found: dict[tuple[str, bytes], set[tuple[int, int]]] = {}
    for folder in folders:
        for (name, data), state in _native.indexed_states(os.fsencode(folder)).items():
            found.setdefault((folder, name), set()).add((data, state))
    return {place: frozenset(states) for place, states in found.items()}
