"""Builds indexes beside the data, ahead of time."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any, NamedTuple

from tfrfast import _native
from tfrfast._base.paths import Paths, expand_paths, written_file
from tfrfast._base.progress import ProgressBar
from tfrfast._base.warning import core_warnings
from tfrfast._remote.options import Storage
from tfrfast._remote.urls import is_url
from tfrfast.reader import Reader

#: How many objects are read to be indexed at the same time.
_OBJECTS_AT_ONCE = 4


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
    storage: Mapping[str, Any] | None = None,
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
    as for Reader. With `publish`, they are also put into the index of their folder in the bucket,
    where every Reader finds them.

    Returns, for each shard, its path, the path of its index, whether the index was built now, and
    how many records and damaged ranges it lists. Damage is not an error here. Raises OSError if a
    shard cannot be read or its index cannot be saved.
    """
    reached = Storage(storage)
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
    built = {} if not urls else _build_for_urls(urls, folder, workers, progress, force, reached)
    if publish:
        places = publish_indexes({url: url for url in urls}, reached.access)
        built = {url: each._replace(path=places[url]) for url, each in built.items()}
    total = sum(os.path.getsize(shard) for shard in shards)
    done = 0
    folders = _native.IndexFolders()
    lock = threading.Lock()
    stop = threading.Event()

    with core_warnings(1), ProgressBar("Indexing", progress) as bar:

        def advance(newly: int) -> None:
            nonlocal done
            if stop.is_set():
                raise KeyboardInterrupt
            with lock:
                done += newly
                bar.update(done, total)

        def build(shard: str) -> BuiltIndex:
            into = b"" if folder is None else written_file(folder)
            return BuiltIndex(
                shard, *_native.build_index(os.fsencode(shard), into, force, folders, advance)
            )

        here = _all_built(build, shards, workers or _native.usable_processors(), stop)
        here = _collected(here)
    built.update((each.shard, each) for each in here)
    return [built[each] for each in everything]


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
    stop = threading.Event()

    def advance(_: int) -> None:
        if stop.is_set():
            raise KeyboardInterrupt

    def build(url: str) -> BuiltIndex:
        return BuiltIndex(
            url, *_native.rebuild_index(os.fsencode(url), storage.access, into, advance)
        )

    with core_warnings(1):
        built = _all_built(build, urls, workers or _OBJECTS_AT_ONCE, stop)
    return {each.shard: each for each in (built if folder is None else _collected(built))}


def _all_built(
    build: Callable[[str], BuiltIndex], shards: list[str], workers: int, stop: threading.Event
) -> list[BuiltIndex]:
    """Builds several at once. An error stops the others, by `stop`, and is raised."""
    with ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(build, shard) for shard in shards]
        try:
            for future in as_completed(futures):
                future.result()
        except BaseException:
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise
    return [future.result() for future in futures]


def index_path(shard: str, folder: str | os.PathLike[str] | None = None) -> str:
    """Where the index of `shard` goes, unless another shard of that name has the place already."""
    if folder is None and is_url(shard):
        return _native.cached_index_path(os.fsencode(shard))
    if folder is None:
        return _native.sibling_index_path(os.fsencode(shard))
    return _native.index_path_in(os.fsencode(folder), os.fsencode(shard))
