"""Shuffles, merges and splits data sets larger than memory."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor
from typing import Any, Literal, SupportsIndex

from tfrfast.base.arguments import UNLIMITED, integer, seed_number
from tfrfast.base.refused_arguments import explains_arguments
from tfrfast.base.sizes import parse_bytes
from tfrfast.jobs.shuffling.inputs import Inputs
from tfrfast.jobs.shuffling.job import ShuffleJob
from tfrfast.jobs.shuffling.publication import Publication, Shuffled
from tfrfast.jobs.shuffling.resumable_folder import (
    ResumableFolder,
    can_resume,
    held,
    resumable_folder_path,
    upload_folder,
)
from tfrfast.jobs.shuffling.split_targets import split_targets_of
from tfrfast.jobs.shuffling.spread_job import SpreadJob
from tfrfast.jobs.shuffling.target import Target
from tfrfast.storage.disk_cache import DiskCache
from tfrfast.storage.output import Output, named_url, open_output
from tfrfast.storage.paths import Paths, expand_paths
from tfrfast.storage.remote.options import Storage
from tfrfast.writing.options import (
    Compression,
    FilePath,
    IndexFolder,
    compression_level,
)
from tfrfast.writing.work_folder import no_empty_folders

__all__ = ["Shuffled", "shuffle"]

_MIN_MEMORY_BYTES = 16 << 20


@explains_arguments
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
    index: bool = True,
    index_folder: IndexFolder = None,
    sync: bool = True,
    work: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
    executor: Executor | None = None,
    storage: Mapping[str, Any] | None = None,
    cache: DiskCache | None = None,
) -> Shuffled:
    """Writes all records of `paths` to new shards, in a uniformly random order.

        made = tfr.shuffle("in/*", "out/train", num_shards=64, seed=1)
        reader = tfr.Reader(made.paths)

    Returns a `Shuffled`: the new paths, the counts and the content hash.

    Args:
      paths: a path, a URL, a glob, or an iterable of paths. A million small files are fine. Objects
        are read once, from beginning to end, in large requests; twice with `on_corruption="skip"`.
      out: the beginning of the new shards' names, folder included: `out/train` makes
        `out/train-00000-of-00064` and so on. With `splits`, each split's name follows:
        `out/birds` makes `out/birds-test-00000-of-00003`, `out/` makes `out/test-00000-of-00003`.
      num_shards: the number of shards. With `splits`, the splits share this number in proportion,
        with at least one shard each; or a dict gives the number for each split. Shards differ by at
        most one record.
      max_bytes: instead of `num_shards`, the largest size of a shard.
      seed: determines the order. Neither `max_memory` nor the cut of the shards changes the order.
      splits: a dict of each split's name and its share of the records. The shares add up to 1. The
        split of a record is as random as its place.
      max_memory: the approximate limit of memory: bytes, or a string like "512MiB". Data larger
        than a quarter of the limit is written and read twice, other data once. The largest record
        must fit.
      on_corruption: "raise", or "skip" to leave damaged records out; see `Shuffled.skipped`. With
        "skip", the numbers of the good records determine the order.
      overwrite: True replaces shards of these names. False raises FileExistsError if such shards
        exist.
      compression, level, index, index_folder, sync: as for `tfr.Writer`. The input may be
        compressed or not; without `compression` the new shards are plain.
      work: the folder for intermediate files, which are as large as the data. The folder must be on
        the same filesystem as `out`. The default is the sibling folder of the new shards' folder.
      progress: True or False shows or hides a bar on stderr. By default it appears on a terminal,
        after a second.
      executor: divides and joins the records in tasks, for example of a cluster:
        `tfrfast.ray.RayExecutor()`, or any other `concurrent.futures.Executor`. The result is the
        same. Its processes must see the same files, the work folder's too, under the same names.
        Each task takes `max_memory`. The shards are counted by `num_shards`.
      storage: options of URLs, as for Reader. If `out` is a URL (s3://, gs://, az://), the shards
        are made in a folder of this machine, in `work` or the temporary folder, and then uploaded.
        The same call resumes if `work` is given.
      cache: a `DiskCache` for bytes from URLs.

    Shards appear under their names when all shards are complete and their content hash equals the
    input's. After an interruption, the same call resumes.

    Every record's checksum is verified. Raises CorruptRecordError or TruncatedRecordError for
    damage that is not skipped, OSError if a file cannot be read or written, and ValueError for
    arguments that contradict each other.
    """
    if on_corruption not in ("raise", "skip"):
        raise ValueError(f'on_corruption is {on_corruption!r}, but must be "raise" or "skip".')
    if executor is not None and max_bytes is not None:
        raise ValueError(
            "With an executor, num_shards counts the shards: the end of a shard of max_bytes "
            "depends on all records before it."
        )
    if executor is not None and named_url(out) and work is None:
        raise ValueError(
            f"An executor shuffles to {named_url(out)!r} by way of a folder that "
            "all of its machines see. Name that folder: work="
        )
    with _output(out, storage, index, index_folder, sync, overwrite, work) as output:
        outputs = split_targets_of(output.path, num_shards, max_bytes, splits)
        output.refuse_taken([each.prefix for each in outputs])
        target = Target(
            outputs=outputs,
            seed=seed_number(seed),
            overwrite=output.overwrite,
            index=output.index,
            index_folder=output.index_folder,
            sync=output.sync,
            compression=compression,
            level=None if level is None else integer("level", level, 0, 9),
        )
        compression_level(compression, level)
        memory = _memory(max_memory)
        folder = ResumableFolder(
            resumable_folder_path(output.path, None if output.is_remote else work),
            sync=output.sync,
        )
        new_folders = os.path.dirname(output.path), os.fsdecode(output.index_folder)
        with no_empty_folders(*new_folders), folder.held():
            unfinished = Publication(folder, target)
            if unfinished.replaces_its_input():
                made = unfinished.finish()
            else:
                reached = Storage(storage, cache)
                inputs = Inputs(expand_paths(paths, reached), reached)
                skips_damage = on_corruption == "skip"
                plan = inputs, target, memory, folder, progress, skips_damage
                job = ShuffleJob(*plan) if executor is None else SpreadJob(*plan, executor)
                made = job.run()
        output.publish(made.paths)
    return made._replace(
        paths=[output.name_of(path) for path in made.paths],
        splits={
            split: [output.name_of(path) for path in some] for split, some in made.splits.items()
        },
    )


@contextlib.contextmanager
def _output(
    out: FilePath,
    storage: Mapping[str, Any] | None,
    index: bool,
    index_folder: IndexFolder,
    sync: bool,
    overwrite: bool,
    work: str | os.PathLike[str] | None,
) -> Iterator[Output]:
    """Yields the output. After a failure, the files are kept if the same call can resume."""
    url = named_url(out)
    folder = upload_folder(url, work) if url and work is not None else None
    with contextlib.nullcontext() if folder is None else held(folder):
        output = open_output(
            out,
            storage,
            index=index,
            index_folder=index_folder,
            sync=sync,
            overwrite=overwrite,
            folder=folder,
        )
        try:
            yield output
        except BaseException:
            if url and can_resume(url, work):
                output.keep()
            else:
                output.discard()
            raise


def _memory(max_memory: int | str) -> int:
    memory = parse_bytes(max_memory) if isinstance(max_memory, str) else max_memory
    return integer("max_memory", memory, _MIN_MEMORY_BYTES, UNLIMITED)
