"""Jobs on many shards, run by Ray's tasks."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from tfrfast.jobs import building_keys as building
from tfrfast.jobs import copying, exporting, verifying
from tfrfast.jobs.copying import Copied
from tfrfast.jobs.exporting import Exported
from tfrfast.jobs.indexing import building as indexing
from tfrfast.jobs.indexing.places import BuiltIndex, index_folder
from tfrfast.jobs.verifying import Verified
from tfrfast.keys.key_file import key_path
from tfrfast.ray.executor import RayExecutor
from tfrfast.ray.nodes import check_nodes
from tfrfast.reader import INDEX_USES, Reader, Skipped, warn_of_damage
from tfrfast.steps.along import Along
from tfrfast.steps.building import build_steps
from tfrfast.storage.paths import (
    PathLike,
    Paths,
    absolute,
    absolute_path,
    expand_paths,
    written_file,
)
from tfrfast.storage.remote.options import Storage, storage_of
from tfrfast.storage.schemes import is_url

__all__ = ["copy", "export", "index", "keys", "steps", "verify"]


def index(
    paths: Paths,
    *,
    folder: str | os.PathLike[str] | None = None,
    ray_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> list[BuiltIndex]:
    """`tfr.build_index`, run as Ray tasks.

        tfrfast.ray.index("data/train-*")

    Args:
      paths, folder, options: as for `tfr.build_index`.
      ray_options: options of `ray.remote` for the tasks, such as `{"num_cpus": 2}`.

    Before the job starts, every node must see the same files, and this process must see files that
    a node writes. Raises OSError that names the other nodes.
    """
    reached = storage_of(options.get("storage"))
    shards = _shards(paths, reached)
    executor = RayExecutor(ray_options)
    into = None if folder is None else absolute_path(folder)
    files = [each for each in shards if not is_url(each)]
    places = {index_folder(each, into) for each in files}
    check_nodes(shards, sorted(places), reached)
    return indexing.build_index(shards, folder=into, executor=executor, **options)


def verify(
    paths: Paths, *, ray_options: Mapping[str, Any] | None = None, **options: Any
) -> Verified:
    """`tfr.verify`, run as Ray tasks.

        assert not tfrfast.ray.verify("data/train-*").damage

    Args:
      paths, options: as for `tfr.verify`.
      ray_options: as for `index`. The same checks precede the job.
    """
    reached = storage_of(options.get("storage"))
    shards = _shards(paths, reached)
    executor = RayExecutor(ray_options)
    check_nodes(shards, [], reached)
    return verifying.verify(shards, executor=executor, **options)


def copy(
    source: Reader | Paths,
    records: Any,
    out: PathLike,
    *,
    ray_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> Copied:
    """`tfr.copy`, run as Ray tasks, one for each new shard.

        tfrfast.ray.copy("data/train-*", numbers, "out/cats", num_shards=64)

    Args:
      source, records, out, options: as for `tfr.copy`. `out` is a path that all nodes see. If `out`
        is a URL, this machine alone writes and uploads, and the tasks only look for damage.
      ray_options: as for `index`. The same checks precede the job.
    """
    storage = options.get("storage")
    if isinstance(source, Reader):
        options.pop("storage", None)  # for `out` alone
    reader, own = _reader(source, options, _COPYING)
    executor = RayExecutor(ray_options)
    name = os.fsdecode(out)
    folders = []
    if not is_url(name):  # only this machine writes to a URL
        name = absolute_path(name)
        folders.append(os.path.dirname(name))
    check_nodes(reader._paths, folders, reader._options["storage"])
    return copying.copy(reader, records, name, executor=executor, storage=storage, **own)


def export(
    source: Reader | Paths,
    out: PathLike,
    *,
    ray_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> Exported:
    """`tfr.export`, run as Ray tasks, one for each file.

        tfrfast.ray.export("data/train-*", "out/train.parquet", num_shards=64)

    Args:
      source, out, options: as for `tfr.export`.
      ray_options: as for `index`. The same checks precede the job.
    """
    reader, own = _reader(source, options, _EXPORTING)
    executor = RayExecutor(ray_options)
    name = absolute_path(os.fsdecode(written_file(out)))
    check_nodes(reader._paths, [os.path.dirname(name)], reader._options["storage"])
    return exporting.export(reader, name, executor=executor, **own)


def keys(
    source: Reader | Paths,
    feature: str,
    *,
    ray_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> str:
    """`tfr.build_keys`, run as Ray tasks. The tasks read and sort; this process merges.

        tfrfast.ray.keys("data/train-*", "image/id")

    Args:
      source, feature, options: as for `tfr.build_keys`.
      ray_options: as for `index`. The same checks precede the job.
    """
    reader, own = _reader(source, options, _KEYS)
    path, damage = build_key_file(reader, feature, ray_options=ray_options, **own)
    warn_of_damage(damage)
    return path


def build_key_file(
    reader: Reader,
    feature: str,
    *,
    folder: str | os.PathLike[str] | None = None,
    max_memory: int | str = "1GiB",
    progress: bool | None = None,
    ray_options: Mapping[str, Any] | None = None,
) -> tuple[str, list[Skipped]]:
    """Like `tfrfast.jobs.building_keys.build_key_file`, for readers of absolute paths."""
    executor = RayExecutor(ray_options)
    key_path(reader, feature, None if folder is None else os.fspath(folder))  # or ValueError
    check_nodes(reader._paths, [], reader._options["storage"])
    return building.build_key_file(reader, feature, folder, max_memory, None, progress, executor)


def steps(
    source: Reader | Paths,
    *,
    along: Along,
    ray_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> str:
    """`tfr.build_steps`, run as Ray tasks. The tasks read and find steps; this process joins.

        tfrfast.ray.steps("data/train-*", along="steps/")

    Args:
      source, along, options: as for `tfr.build_steps`.
      ray_options: as for `index`. The same checks precede the job.
    """
    reader, own = _reader(source, options, _STEPS)
    executor = RayExecutor(ray_options)
    check_nodes(reader._paths, [], reader._options["storage"])
    return build_steps(reader, along=along, executor=executor, **own)


_COPYING = {
    *("num_shards", "max_bytes", "compression", "level", "index", "sync"),
    *("overwrite", "progress"),
}
_EXPORTING = {
    *("num_shards", "features", "columns", "record", "text", "sample"),
    *("overwrite", "progress"),
}
_KEYS = {"folder", "max_memory", "progress"}
_STEPS = {"folder", "progress"}


def _reader(
    source: Reader | Paths, options: dict[str, Any], own: set[str]
) -> tuple[Reader, dict[str, Any]]:
    """Returns a reader of absolute names, and the options that do not belong to the reader."""
    mine = {name: value for name, value in options.items() if name in own}
    rest = {name: value for name, value in options.items() if name not in own}
    if isinstance(source, Reader):
        if rest:
            raise TypeError(f"{next(iter(rest))} is an option of Reader, which was made already.")
        source._frames()
        names = absolute(source._paths)
        held = _with_absolute_index(source._options)
        is_absolute = (names, held) == (source._paths, source._options)
        return (source if is_absolute else Reader(names, **held)), mine
    reached = storage_of(rest.pop("storage", None))
    held = _with_absolute_index(rest)
    return Reader(_shards(source, reached), storage=reached, **held), mine


def _with_absolute_index(options: dict[str, Any]) -> dict[str, Any]:
    index = options.get("index", "auto")
    return options if index in INDEX_USES else {**options, "index": absolute_path(index)}


def _shards(paths: Paths, storage: Storage) -> list[str]:
    return absolute(expand_paths(paths, storage))
