"""Indexes of files, built beside the data."""

from __future__ import annotations

import os
from concurrent.futures import Executor
from typing import Any

from tfrfast import _native
from tfrfast.base.progress import ProgressBar
from tfrfast.base.warning import core_warnings
from tfrfast.jobs.cutting import grouped, size_of
from tfrfast.jobs.indexing.places import BuiltIndex, compact, index_folder
from tfrfast.jobs.running import Advance, num_workers, run_tasks
from tfrfast.storage.paths import written_file


def build(
    shards: list[str],
    executor: Executor | None,
    folder: str | os.PathLike[str] | None,
    threads: int | None,
    progress: bool | None,
    force: bool,
) -> list[BuiltIndex]:
    """Builds the missing indexes, or all indexes."""
    into = b"" if folder is None else written_file(folder)
    tasks = _plan(shards, into, force, num_workers(executor, threads))
    total = sum(task.amount for task in tasks)
    kept_in = _places(shards, folder) if executor is not None else set()
    before = _states_in(kept_in)
    with core_warnings(), ProgressBar("Indexing", progress) as bar:
        parts = run_tasks(tasks, executor, threads, bar.adding(total))
        built = [each for part in parts for each in part]
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


class _Build:
    """Builds the indexes of some files, and adds each to its folder's index."""

    def __init__(
        self,
        shards: list[str],
        num_bytes: int,
        folder: bytes,
        force: bool,
        folders: _native.IndexFolders | None,
    ) -> None:
        self._shards = shards
        self.amount = num_bytes
        self._folder = folder
        self._force = force
        self._folders = folders

    def __reduce__(self) -> tuple[Any, ...]:
        return _Build, (self._shards, self.amount, self._folder, self._force, None)

    def run(self, advance: Advance) -> list[BuiltIndex]:
        folders = self._folders or _native.IndexFolders()
        return [
            BuiltIndex(
                shard,
                *_native.build_index(
                    os.fsencode(shard), self._folder, self._force, folders, advance
                ),
            )
            for shard in self._shards
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
