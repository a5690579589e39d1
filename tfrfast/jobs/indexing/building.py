"""Builds indexes beside the data, ahead of time."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import Executor
from typing import Any

from tfrfast.base.refused_arguments import explains_arguments
from tfrfast.jobs.indexing import files, objects
from tfrfast.jobs.indexing.places import BuiltIndex
from tfrfast.jobs.running import Workers
from tfrfast.storage.disk_cache import DiskCache
from tfrfast.storage.paths import Paths, expand_paths
from tfrfast.storage.remote.options import Storage
from tfrfast.storage.schemes import is_url


@explains_arguments
def build_index(
    paths: Paths,
    *,
    index_folder: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    progress: bool | None = None,
    force: bool = False,
    publish: bool = False,
    executor: Executor | None = None,
    storage: Mapping[str, Any] | None = None,
    cache: DiskCache | None = None,
) -> list[BuiltIndex]:
    """Builds the indexes of `paths` and saves them in the place where every reader looks first.

        tfr.build_index("imagenet/train-*")
        reader = tfr.Reader("imagenet/train-*")       # opens in milliseconds

    The place is one file for all shards of a folder, in the sibling folder of the data folder
    (`imagenet/` -> `imagenet.tfrfast/index`). `index_folder` names another place, which may serve
    many data folders; give readers the same `index_folder`. Indexes that still fit are kept,
    unless `force`. Other processes may build the same indexes at the same time.

    Objects behind URLs are read once from beginning to end, in large requests. Their indexes are
    kept in this machine's cache folder, unless `index_folder` is given. `storage` holds options of
    the store, as for Reader, and `cache` keeps the bytes that were read. With `publish`, the
    indexes are also added to the index of their folder in the bucket, where every Reader finds
    them.

    An `executor`, such as `ProcessPoolExecutor()`, builds instead of `threads`. Its processes must
    see the same files under the same names. They return the indexes of objects, and this process
    keeps or publishes these.

    Returns a BuiltIndex for each shard: its path, the path of its index, whether the index was
      built now, and the numbers of records and of damaged ranges. Damage is not an error here.
      Raises OSError if a shard cannot be read or its index cannot be saved.
    """
    workers = Workers(executor, threads, progress)
    reached = Storage(storage, cache)
    if publish and index_folder is not None:
        raise ValueError(
            "publish=True puts indexes beside the objects, and index_folder= elsewhere. Pass only "
            "one."
        )
    everything = list(dict.fromkeys(expand_paths(paths, reached)))
    urls = [each for each in everything if is_url(each)]
    shards = [each for each in everything if not is_url(each)]
    if publish and shards:
        raise ValueError(
            f"{shards[0]!r} is a file, and publish=True is for URLs. The index of a file is beside "
            "the file without it."
        )
    if publish:
        from tfrfast.storage.remote.publishing import place_of, publish_indexes

        for url in urls:
            place_of(url)
    built = _build_objects(urls, index_folder, workers, force, reached)
    if publish:
        places = publish_indexes({url: url for url in urls}, reached.access)
        built = {url: each._replace(path=places[url]) for url, each in built.items()}
    for each in files.build(shards, workers, index_folder, force):
        built[each.shard] = each
    return [built[each] for each in everything]


def _build_objects(
    urls: list[str],
    folder: str | os.PathLike[str] | None,
    workers: Workers,
    force: bool,
    storage: Storage,
) -> dict[str, BuiltIndex]:
    if not urls:
        return {}
    if workers.executor is not None:
        return objects.build_elsewhere(urls, folder, workers, force, storage)
    if force:
        return objects.rebuild(urls, folder, workers, storage)
    return objects.build(urls, folder, workers, storage)
