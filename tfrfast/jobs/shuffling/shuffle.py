"""Shuffles, reshards, merges and splits data sets larger than memory."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from typing import Any, Literal, SupportsIndex

from tfrfast.base.arguments import integer, seed_number
from tfrfast.base.sizes import parse_bytes
from tfrfast.jobs.shuffling.far_folder import can_resume_far, far_folder
from tfrfast.jobs.shuffling.inputs import Inputs
from tfrfast.jobs.shuffling.job import ShuffleJob
from tfrfast.jobs.shuffling.outputs import outputs_of
from tfrfast.jobs.shuffling.publication import Publication, Shuffled
from tfrfast.jobs.shuffling.target import Target
from tfrfast.jobs.shuffling.work_folder import WorkFolder, held, work_folder_path
from tfrfast.storage.disk_cache import DiskCache, cache_text
from tfrfast.storage.paths import Paths, expand_paths, written_file
from tfrfast.storage.remote.options import Storage
from tfrfast.storage.remote.urls import is_url
from tfrfast.writing.options import (
    Compression,
    FilePath,
    Index,
    compression_level,
    index_folder_bytes,
)
from tfrfast.writing.work_folder import no_empty_folders

__all__ = ["Shuffled", "shuffle"]

_MIN_MEMORY_BYTES = 16 << 20
_MAX_MEMORY_BYTES = 2**63 - 1


def shuffle(
    paths: Paths,
    out: FilePath,
    *,
    num_shards: SupportsIndex | Mapping[str, SupportsIndex] | None = None,
    max_bytes: SupportsIndex | None = None,
    seed: SupportsIndex = 0,
    splits: Mapping[str, float] | None = None,
    max_memory: int | str = "1GiB",
    on_corruption: Literal["raise", "skip"] = "raise",
    overwrite: bool = False,
    compression: Compression | None = None,
    level: int | None = None,
    index: Index = True,
    sync: bool = True,
    work: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
    storage: Mapping[str, Any] | None = None,
    cache: DiskCache | None = None,
) -> Shuffled:
    """Writes all records of `paths` to new shards, in a uniformly random order.

        made = tfr.shuffle("in/*", "out/train", num_shards=64, seed=1)
        reader = tfr.Reader(made.paths)

    Returns a `Shuffled`: the new paths, the counts and the content hash.

    Args:
      paths: a path, a URL, a glob, or an iterable of them. There may be a million small files.
        Objects are read once, from beginning to end, in large requests; with "skip" for
        `on_corruption`, twice.
      out: the beginning of the new shards' names, folder included: `out/train` makes
        `out/train-00000-of-00064` and so on. With `splits`, each split's name follows:
        `out/birds` makes `out/birds-test-00000-of-00003`, `out/` makes `out/test-00000-of-00003`.
      num_shards: the number of shards. With `splits`, it is the number for all splits together,
        which they share in proportion, with at least one each; or a dict with the number for each
        split. Shards differ by at most one record.
      max_bytes: instead of `num_shards`, the largest size of a shard.
      seed: determines the order, which depends neither on `max_memory` nor on how the shards are
        cut.
      splits: a dict of each split's name and its share of the records. The shares add up to 1.
        Which record is in which split is as random as the order.
      max_memory: about how much memory this may take: bytes, or a string like "512MiB". Data larger
        than a quarter of it is written and read twice, other data once. The largest record must
        fit.
      on_corruption: "raise", or "skip" to leave damaged records out; see `Shuffled.skipped`. The
        numbers that determine the order are then those of the records that are left.
      overwrite: True replaces shards of these names. False raises FileExistsError if there are any.
      compression, level, index, sync: as for `tfr.Writer`. The input may be compressed or not;
        without `compression` the new shards are plain.
      work: where to make the folder for intermediate files, which are as large as the data. It must
        be on the same filesystem as `out`. By default it is the sibling folder of the new shards'
        folder.
      progress: True or False shows or hides a bar on stderr. By default it appears on a terminal,
        after a second.
      storage: how to reach URLs, as for Reader. If `out` is one (s3://, gs://, az://), the shards
        are made in a folder of this machine, in `work` or the temporary folder, and then uploaded.
        The same call resumes if `work` is given.
      cache: a `DiskCache` that keeps what is read from URLs.

    Nothing appears under the new names before all shards are complete and their content hash is
    that of the input. If the call is interrupted, the same call resumes where it stopped.

    Every record's checksum is verified. Raises CorruptRecordError or TruncatedRecordError for
    damage that is not skipped, OSError if a file cannot be read or written, and ValueError for
    arguments that contradict each other.
    """
    if on_corruption not in ("raise", "skip"):
        raise ValueError(f'on_corruption is {on_corruption!r}, but must be "raise" or "skip".')
    name = os.fsdecode(out) if isinstance(out, (str, bytes, os.PathLike)) else ""
    if is_url(name) and not os.path.lexists(name):
        from tfrfast.writing.far_output import FarOutput

        place = None if work is None else far_folder(name, work)
        with contextlib.nullcontext() if place is None else held(place):
            far = FarOutput(name, Storage(storage), index, overwrite, place)
            try:
                outputs = outputs_of(far.path, num_shards, max_bytes, splits)
                prefixes = [each.prefix for each in outputs]
                far.refuse_taken(prefixes)
                made = shuffle(
                    paths,
                    far.path,
                    num_shards=num_shards,
                    max_bytes=max_bytes,
                    seed=seed,
                    splits=splits,
                    max_memory=max_memory,
                    on_corruption=on_corruption,
                    overwrite=True,
                    compression=compression,
                    level=level,
                    index=index is not False,
                    sync=False,
                    progress=progress,
                    storage=storage,
                    cache=cache,
                )
            except BaseException:
                if can_resume_far(name, work):
                    far.keep()
                else:
                    far.remove()
                raise
            far.publish(made.paths, prefixes)
        return made._replace(
            paths=[far.url_of(path) for path in made.paths],
            splits={
                split: [far.url_of(path) for path in some] for split, some in made.splits.items()
            },
        )
    name = os.fsdecode(written_file(out))
    target = Target(
        outputs=outputs_of(name, num_shards, max_bytes, splits),
        seed=seed_number(seed),
        overwrite=overwrite,
        index=index,
        sync=sync,
        compression=compression,
        level=level,
    )
    compression_level(compression, level)
    memory = _memory(max_memory)
    folder = WorkFolder(work_folder_path(name, work))
    index_folder = os.fsdecode(index_folder_bytes(index))
    with no_empty_folders(os.path.dirname(name), index_folder), folder.held():
        unfinished = Publication(folder, target)
        if unfinished.replaces_its_input():
            return unfinished.finish()
        reached = Storage(storage, cache_text(cache))
        inputs = Inputs(expand_paths(paths, reached), reached)
        return ShuffleJob(inputs, target, memory, folder, progress, on_corruption == "skip").run()


def _memory(max_memory: int | str) -> int:
    memory = parse_bytes(max_memory) if isinstance(max_memory, str) else max_memory
    return integer("max_memory", memory, _MIN_MEMORY_BYTES, _MAX_MEMORY_BYTES)
