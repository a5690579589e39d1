"""Builds indexes beside the data, ahead of time."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import NamedTuple

from tfrfast import _native
from tfrfast._base.paths import Paths, expand_paths, written_file
from tfrfast._base.progress import ProgressBar
from tfrfast._base.warning import core_warnings


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
) -> list[BuiltIndex]:
    """Builds the indexes of `paths` and saves them where every reader looks first.

        tfr.build_index("imagenet/train-*")
        reader = tfr.Reader("imagenet/train-*")       # opens in milliseconds

    That place is the sibling folder of the data folder (`imagenet/` -> `imagenet.tfrfast/`). With
    `folder` it is that folder, which may serve many data folders, and which readers must be given
    as `index=`. Indexes that still fit are kept, unless `force`. Other processes may build the same
    indexes at the same time.

    Returns, for each shard, its path, the path of its index, whether the index was built now, and
    how many records and damaged ranges it lists. Damage is not an error here. Raises OSError if a
    shard cannot be read or its index cannot be saved.
    """
    shards = list(dict.fromkeys(expand_paths(paths)))
    total = sum(os.path.getsize(shard) for shard in shards)
    done = 0
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
            return BuiltIndex(shard, *_native.build_index(os.fsencode(shard), into, force, advance))

        with ThreadPoolExecutor(workers or _native.usable_processors()) as pool:
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
    if folder is None:
        return _native.sibling_index_path(os.fsencode(shard))
    return _native.index_path_in(os.fsencode(folder), os.fsencode(shard))
