"""Builds indexes beside the data, ahead of time."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, NamedTuple

from tfrfast import _native
from tfrfast._base.paths import Paths, expand_paths, reach, written_file
from tfrfast._base.progress import ProgressBar
from tfrfast._base.warning import core_warnings
from tfrfast._jobs.cutting import grouped, size_of
from tfrfast._jobs.running import Advance, checked_threads, num_workers, run_tasks
from tfrfast._remote.job_threads import JobThreads
from tfrfast._remote.options import Storage
from tfrfast._remote.urls import is_url
from tfrfast.disk_cache import DiskCache, cache_text
from tfrfast.errors import StaleIndexError
from tfrfast.reader import Reader

#: How many objects are read to be indexed at the same time.
_OBJECTS_AT_ONCE = 4
#: How many objects are asked for at the same time whether they have an index.
_LOOKS_AT_ONCE = 16


class BuiltIndex(NamedTuple):
    """One shard's index: where it is, whether it had to be built, and what it lists."""

    shard: str
    path: str
    was_built: bool
    num_records: int
    damage: int


def build_index(
    paths: Paths,
    *,
    folder: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    progress: bool | None = None,
    force: bool = False,
    publish: bool = False,
    executor: Executor | None = None,
    storage: Mapping[str, Any] | None = None,
    cache: DiskCache | None = None,
) -> list[BuiltIndex]:
    """Builds the indexes of `paths` and saves them where every reader looks first.

        tfr.build_index("imagenet/train-*")
        reader = tfr.Reader("imagenet/train-*")       # opens in milliseconds

    That place is one file for all shards of a folder, in the sibling folder of the data folder
    (`imagenet/` -> `imagenet.tfrfast/index`). With `folder` it lies in that folder, which may serve
    many data folders, and which readers must be given as `index=`. Indexes that still fit are kept,
    unless `force`. Other processes may build the same indexes at the same time.

    Objects behind URLs are read once from beginning to end, in large requests. Their indexes are
    kept in this machine's cache folder, unless `folder` is given; `storage` says how to reach them,
    as for Reader, and what is read is kept in `cache`. With `publish`, they are also put into the
    index of their folder in the bucket, where every Reader finds them.

    An `executor`, such as `ProcessPoolExecutor()`, builds instead of `workers` threads. Its
    processes must see the same files under the same names. The indexes of objects come back from
    them, and are kept, or published, by this process.

    Returns, for each shard, its path, the path of its index, whether the index was built now, and
    how many records and damaged ranges it lists. Damage is not an error here. Raises OSError if a
    shard cannot be read or its index cannot be saved.
    """
    workers = checked_threads(workers, "workers")
    reached = Storage(storage, cache_text(cache))
    if publish and folder is not None:
        raise ValueError("publish=True puts indexes beside the objects, and folder= elsewhere.")
    everything = list(dict.fromkeys(expand_paths(paths, reached)))
    urls = [each for each in everything if is_url(each)]
    shards = [each for each in everything if not is_url(each)]
    if publish and shards:
        raise ValueError(f"{shards[0]!r} is a file: its index is beside it without publish=True.")
    if publish:
        from tfrfast._remote.publishing import place_of, publish_indexes

        for url in urls:
            place_of(url)
    if not urls:
        built = {}
    elif executor is None:
        built = _build_for_urls(urls, folder, workers, progress, force, reached)
    else:
        built = _build_for_urls_by(executor, urls, folder, progress, force, reached)
    if publish:
        places = publish_indexes({url: url for url in urls}, reached.access)
        built = {url: each._replace(path=places[url]) for url, each in built.items()}
    into = b"" if folder is None else written_file(folder)
    tasks = plan_indexes(shards, into, force, num_workers(executor, workers))
    total = sum(task.amount for task in tasks)
    kept_in = _places(shards, folder) if executor is not None else set()
    before = _loose_in(kept_in)
    with core_warnings(1), ProgressBar("Indexing", progress) as bar:
        parts = run_tasks(tasks, executor, workers, bar.adding(total))
        here = [each for part in parts for each in part]
        # A task that an executor runs again finds what it has built, and takes it for an older one.
        new = _loose_in(kept_in).items() - before.items()
        is_new = {path for path, _ in new}
        here = [each._replace(was_built=each.was_built or each.path in is_new) for each in here]
        here = _collected(here)
    built.update((each.shard, each) for each in here)
    return [built[each] for each in everything]


def plan_indexes(shards: list[str], folder: bytes, force: bool, workers: int) -> list[_Build]:
    """The tasks. A shard's index is built by one of them."""
    sizes = [os.path.getsize(shard) for shard in shards]
    folders = _native.IndexFolders()
    return [
        _Build(group, size, folder, force, folders)
        for group, size in grouped(shards, sizes, workers)
    ]


class _Build:
    """Builds the indexes of some files, each of which appears whole in its place.

    They lie beside each other until they are collected.
    """

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
    return {os.path.dirname(index_path(shard, folder)) for shard in shards}


def _loose_in(folders: set[str]) -> dict[str, tuple[int, int]]:
    """The indexes in folders that are still to be collected, by path, and which files these are."""
    found = {}
    for folder in folders:
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith(".index"):
                    facts = entry.stat()
                    found[entry.path] = facts.st_ino, facts.st_mtime_ns
    return found


def _collected(built: list[BuiltIndex]) -> list[BuiltIndex]:
    """The same after each folder's loose indexes were collected into one."""
    for folder in dict.fromkeys(os.path.dirname(each.path) for each in built if each.path):
        _native.merge_indexes(os.fsencode(folder))
    return [each._replace(path=_path_now(each.path)) for each in built]


def _path_now(path: str) -> str:
    if not path or os.path.exists(path):
        return path
    return _native.folder_index_path(os.fsencode(os.path.dirname(path)))


def _build_for_urls(
    urls: list[str],
    folder: str | os.PathLike[str] | None,
    workers: int | None,
    progress: bool | None,
    force: bool,
    storage: Storage,
) -> dict[str, BuiltIndex]:
    """Opening a reader builds what is missing, and keeps it."""
    if force:
        return _rebuild_for_urls(urls, folder, workers, storage)
    with Reader(
        urls,
        on_corruption="skip",
        index="auto" if folder is None else folder,
        threads=workers,
        progress=progress,
        storage=storage,
    ) as reader:
        damage = Counter(each.path for each in reader.skipped)
        return {
            shard.path: BuiltIndex(
                shard.path,
                shard.index or index_path(shard.path, folder),
                shard.index is None,
                shard.num_records,
                damage[shard.path],
            )
            for shard in reader.shards
        }


def _rebuild_for_urls(
    urls: list[str],
    folder: str | os.PathLike[str] | None,
    workers: int | None,
    storage: Storage,
) -> dict[str, BuiltIndex]:
    into = b"" if folder is None else written_file(folder)
    tasks = [_Rebuild(url, into, storage) for url in urls]
    with core_warnings(1):
        built = list(run_tasks(tasks, None, workers or _OBJECTS_AT_ONCE, lambda _: None))
    return {each.shard: each for each in (built if folder is None else _collected(built))}


class _Rebuild(NamedTuple):
    """Builds the index of an object, even if there is one."""

    url: str
    folder: bytes
    storage: Storage
    amount: int = 1

    def run(self, advance: Advance) -> BuiltIndex:
        made = _native.rebuild_index(
            os.fsencode(self.url), self.storage.core_access, self.folder, advance
        )
        return BuiltIndex(self.url, *made)


def _build_for_urls_by(
    executor: Executor,
    urls: list[str],
    folder: str | os.PathLike[str] | None,
    progress: bool | None,
    force: bool,
    storage: Storage,
) -> dict[str, BuiltIndex]:
    """Other processes read the objects. This one keeps the indexes."""
    if folder is not None:
        os.makedirs(folder, exist_ok=True)
    into = b"" if folder is None else written_file(folder)

    def look(url: str) -> BuiltIndex | None:
        kept = _kept_index(url, storage)
        return kept and _copied(kept, into, storage)

    with JobThreads(_LOOKS_AT_ONCE) as pool:
        looked = [] if force else pool.map(look, urls)
        built = {each.shard: each for each in looked if each}
    missing = [url for url in urls if url not in built]
    sizes = [size_of(url) for url in missing]
    groups = grouped(missing, sizes, num_workers(executor))
    tasks = [_BuildElsewhere(some, storage) for some, _ in groups]
    with ProgressBar("Indexing", progress, "objects") as bar:
        for part in run_tasks(tasks, executor, None, bar.adding(len(missing))):
            for each, content in part:
                path = _native.cached_index_path(os.fsencode(each.shard))
                _put(path, content)
                # At once: the cache may later remove it to make room.
                built[each.shard] = _copied(each._replace(path=path), into, storage)
    if folder is not None:
        return {each.shard: each for each in _collected(list(built.values()))}
    return built


def _copied(kept: BuiltIndex, folder: bytes, storage: Storage) -> BuiltIndex:
    """An object's index after it was copied from the cache to a folder, if there is one."""
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


@dataclass
class _BuildElsewhere:
    """Builds the indexes of some objects in another process, and brings their bytes."""

    urls: list[str]
    storage: Storage

    @property
    def amount(self) -> int:
        return len(self.urls)

    def run(self, advance: Advance) -> list[tuple[BuiltIndex, bytes]]:
        reach(self.urls, self.storage)
        made = []
        for url in self.urls:
            each = _Rebuild(url, b"", self.storage).run(_ignore)
            with open(each.path, "rb") as file:
                made.append((each._replace(path=""), file.read()))
            advance(1)
        return made


def _put(path: str, content: bytes) -> None:
    cache = os.path.dirname(path)
    os.makedirs(cache, exist_ok=True)
    # What a killed process leaves under such a name is removed with old indexes.
    temporary = os.path.join(cache, f".tmp-{secrets.token_hex(8)}")
    try:
        with open(temporary, "xb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def _ignore(_: int) -> None:
    pass


def index_path(shard: str, folder: str | os.PathLike[str] | None = None) -> str:
    """Where the index of `shard` goes, unless another shard of that name has the place already."""
    if folder is None and is_url(shard):
        return _native.cached_index_path(os.fsencode(shard))
    if folder is None:
        return _native.sibling_index_path(os.fsencode(shard))
    return _native.index_path_in(os.fsencode(folder), os.fsencode(shard))
