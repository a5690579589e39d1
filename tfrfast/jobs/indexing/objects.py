"""Indexes of objects on a network, kept on this machine."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from tfrfast import _native
from tfrfast.base.job_threads import JobThreads
from tfrfast.base.warning import core_warnings
from tfrfast.errors import StaleIndexError
from tfrfast.jobs.cutting import grouped, size_of
from tfrfast.jobs.indexing.places import BuiltIndex, compact
from tfrfast.jobs.running import Advance, Workers
from tfrfast.reader import Reader
from tfrfast.storage.paths import reach, written_file
from tfrfast.storage.remote.options import Storage

#: The number of objects that are indexed at the same time.
_OBJECTS_AT_ONCE = 4
#: The number of objects whose indexes are looked up at the same time.
_LOOKS_AT_ONCE = 16


def build(
    urls: list[str],
    folder: str | os.PathLike[str] | None,
    workers: Workers,
    storage: Storage,
) -> dict[str, BuiltIndex]:
    """Opens a reader, which builds and keeps the missing indexes."""
    with Reader(
        urls,
        on_corruption="skip",
        index_folder=folder,
        threads=workers.threads,
        progress=workers.progress,
        storage=storage,
    ) as reader:
        damage = Counter(each.path for each in reader.skipped)
        return {
            shard.path: BuiltIndex(
                shard.path,
                shard.index or _index_path(shard.path, folder),
                shard.index is None,
                shard.num_records,
                damage[shard.path],
            )
            for shard in reader.shards
        }


def rebuild(
    urls: list[str],
    folder: str | os.PathLike[str] | None,
    workers: Workers,
    storage: Storage,
) -> dict[str, BuiltIndex]:
    into = b"" if folder is None else written_file(folder)
    tasks = [_Rebuild(url, into, storage) for url in urls]
    with core_warnings():
        some = Workers(None, workers.threads or _OBJECTS_AT_ONCE, progress=False)
        built = list(some.run("Indexing", tasks))
    if folder is not None:
        compact(built)
    return {each.shard: each for each in built}


class _Rebuild(NamedTuple):
    """Builds the index of an object, even if an index exists."""

    url: str
    folder: bytes
    storage: Storage
    amount: int = 1

    def run(self, advance: Advance) -> BuiltIndex:
        url = os.fsencode(self.url)
        made = _native.build_index(url, self.folder, True, None, advance, self.storage.core)
        return BuiltIndex(self.url, *made)


def build_elsewhere(
    urls: list[str],
    folder: str | os.PathLike[str] | None,
    workers: Workers,
    force: bool,
    storage: Storage,
) -> dict[str, BuiltIndex]:
    """Lets other processes read the objects. This process keeps the indexes."""
    into = b"" if folder is None else written_file(folder)
    if folder is not None:
        os.makedirs(folder, exist_ok=True)

    def look(url: str) -> BuiltIndex | None:
        kept = _kept_index(url, storage)
        return kept and _copied(kept, into, storage)

    with JobThreads(_LOOKS_AT_ONCE) as pool:
        looked = [] if force else pool.map(look, urls)
        built = {each.shard: each for each in looked if each}
    missing = [url for url in urls if url not in built]
    sizes = [size_of(url) for url in missing]
    groups = grouped(missing, sizes, workers.count)
    tasks = [_BuildElsewhere(some, storage) for some, _ in groups]
    for part in workers.run("Indexing", tasks, "objects"):
        for each in _keep(part):
            # Copies at once, because the cache may later remove the index to make space.
            built[each.shard] = _copied(each, into, storage)
    if folder is not None:
        compact(list(built.values()))
    return built


def _index_path(url: str, folder: str | os.PathLike[str] | None) -> str:
    if folder is None:
        return _native.cached_index_path(os.fsencode(url))
    return _native.index_path_in(os.fsencode(folder))


def _copied(kept: BuiltIndex, folder: bytes, storage: Storage) -> BuiltIndex:
    """Copies an object's index, if it exists, from the cache to a folder."""
    if not folder:
        return kept
    url = kept.shard
    path = _native.index_object(url, storage.access, os.fsencode(url), folder, True)
    return kept._replace(path=path)


def _kept_index(url: str, storage: Storage) -> BuiltIndex | None:
    try:
        reader = Reader(url, on_corruption="skip", index="require", progress=False, storage=storage)
    except StaleIndexError:
        return None
    with reader:
        (shard,) = reader.shards
        return BuiltIndex(url, shard.index or "", False, shard.num_records, len(reader.skipped))


class _FetchedIndex(NamedTuple):
    """Indexes that another process built, and the folder's index that holds them."""

    built: list[BuiltIndex]
    index_bytes: bytes


@dataclass
class _BuildElsewhere:
    """Builds the indexes of some objects in another process, and returns their bytes."""

    urls: list[str]
    storage: Storage

    @property
    def amount(self) -> int:
        return len(self.urls)

    def run(self, advance: Advance) -> _FetchedIndex:
        reach(self.urls, self.storage)
        built = []
        with TemporaryDirectory() as folder:
            for url in self.urls:
                built.append(_Rebuild(url, os.fsencode(folder), self.storage).run(_ignore))
                advance(1)
            index = Path(built[-1].path).read_bytes()
        return _FetchedIndex(built, index)


def _keep(made: _FetchedIndex) -> list[BuiltIndex]:
    """Puts indexes of other processes into this user's cache."""
    urls = [os.fsencode(each.shard) for each in made.built]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "index"
        path.write_bytes(made.index_bytes)
        _native.cache_indexes(urls, os.fsencode(path))
    return [
        each._replace(path=_native.cached_index_path(url))
        for each, url in zip(made.built, urls, strict=True)
    ]


def _ignore(_: int) -> None:
    pass
