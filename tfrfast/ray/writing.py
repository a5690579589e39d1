"""Datasets of Ray Data as shards that are published together."""

from __future__ import annotations

import contextlib
import functools
import os
import pickle
import uuid
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, SupportsIndex

from tfrfast.errors import RecordError
from tfrfast.example.encoding import encoded_table
from tfrfast.jobs import copying
from tfrfast.jobs.copying import Copied
from tfrfast.ray.columns import storage_columns
from tfrfast.ray.executor import RayExecutor
from tfrfast.ray.tasks import processors_of_task
from tfrfast.reader import Reader
from tfrfast.storage.paths import absolute
from tfrfast.storage.remote.options import Storage, storage_of
from tfrfast.storage.schemes import is_url
from tfrfast.writing.options import Compression, FilePath, IndexFolder
from tfrfast.writing.shard_set import Unpublished
from tfrfast.writing.work_folder import WorkFolder
from tfrfast.writing.writer import ShardedWriter

if TYPE_CHECKING:
    from ray.data import Dataset

__all__ = ["write"]


def write(
    dataset: Dataset,
    out: FilePath,
    *,
    num_shards: SupportsIndex,
    raw: Collection[str] = (),
    compression: Compression | None = None,
    level: int | None = None,
    index: bool = True,
    index_folder: IndexFolder = None,
    sync: bool = True,
    overwrite: bool = False,
    concurrency: int | None = None,
    progress: bool | None = None,
    storage: Mapping[str, Any] | Storage | None = None,
) -> Copied:
    """Writes each row of a Ray dataset as a tf.train.Example, to shards with indexes.

        tfrfast.ray.write(dataset, "out/train", num_shards=64)

    The rows keep the dataset's order. Each shard has a run of rows, and shards differ by at most
    one record. Returns a `tfrfast.jobs.copying.Copied`: the new paths and the counts.

    First, Ray's tasks encode the dataset's blocks, on any node, into a hidden folder beside `out`.
    Then other tasks copy the records to the shards, like `tfr.copy`. Both together take twice the
    space. This process must see files that each node writes.
    Shards appear under their names when all shards are complete. After a failure, no shard appears.
    A task may run twice.

    Args:
      dataset: a `ray.data.Dataset`.
      out: the beginning of the new shards' names: `out/train` makes `out/train-00000-of-00064`.
      num_shards: the number of shards.
      raw: columns whose tensors become one byte string each, as for `tfr.encode_examples`.
      concurrency: the number of tasks that encode at once, as for `ray.data.Dataset.map_batches`.
      compression, level, index, index_folder, sync, overwrite: as for `tfr.ShardedWriter`.
      progress: True or False shows or hides a bar on stderr while records are copied.
      storage: how to reach URLs, as for Reader.

    Raises FeatureError for values that no feature can hold.
    """
    reached = storage_of(storage)
    (name,) = absolute([os.fsdecode(out)])
    options: dict[str, Any] = {
        "num_shards": num_shards,
        "compression": compression,
        "level": level,
        "index": index,
        "index_folder": index_folder,
        "sync": sync,
        "overwrite": overwrite,
        "storage": reached,
    }
    if is_url(name) and set("*?[") & set(name):
        raise ValueError(f"{name!r} reads as a pattern. Write to a URL without *, ? and [.")
    ShardedWriter(name, **options).abort()  # raises errors of publishing before any work is done
    executor = None if is_url(name) else RayExecutor()  # one machine uploads
    with _runs_beside(name, reached) as runs:
        paths = _encode(dataset, runs, frozenset(raw), concurrency)
        reader = Reader(
            paths,
            index="memory" if runs.index_folder is None else "auto",
            index_folder=runs.index_folder,
            progress=False,
            storage=reached,
        )
        return copying.copy(
            reader, slice(None), name, progress=progress, executor=executor, **options
        )


@contextlib.contextmanager
def _runs_beside(out: str, storage: Storage) -> Iterator[Unpublished]:
    """Yields a folder for the tasks' records, and removes the folder at the end.

    Each run of a task writes a file of its own, so a task may run twice, even at the same time.
    """
    if not is_url(out):
        with WorkFolder(f"{out}.runs") as work:
            yield Unpublished.in_work_folder(work, index=True, sync=False)
        return
    from tfrfast.storage.remote.listing import find_objects
    from tfrfast.storage.remote.objects import remove_objects

    folder, _, name = out.rpartition("/")
    place = f"{folder}/.{name}.runs-{uuid.uuid4().hex[:12]}"
    try:
        yield Unpublished(place, index=False, sync=False, storage=storage)
    finally:
        with contextlib.suppress(FileNotFoundError):
            remove_objects(find_objects(f"{place}/shards/*", storage.access), storage.access)


def _encode(
    dataset: Dataset, runs: Unpublished, raw: frozenset[str], concurrency: int | None
) -> list[str]:
    """Has Ray's tasks write all rows, and returns the runs in the order of the rows."""
    written = dataset.map_batches(
        functools.partial(_write_run, runs=runs, raw=raw),
        batch_size=None,  # whole blocks
        batch_format="pyarrow",
        zero_copy_batch=True,
        concurrency=concurrency,
    )
    # The dataset has a context of its own.
    written.context.execution_options.preserve_order = True
    paths = []
    for row in written.iter_rows():
        if row["error"]:
            raise pickle.loads(row["error"])
        paths.append(row["path"])
    if not paths:
        with runs.writer() as writer:
            pass
        paths = [writer.path]
    return paths


def _write_run(block: Any, *, runs: Unpublished, raw: frozenset[str]) -> dict[str, list[Any]]:
    """Writes a block's rows to a run, in a Ray task.

    Returns an error of tfrfast, because Ray would wrap a raised error in its own.
    """
    if len(block) == 0:
        return {"path": [], "error": []}
    try:
        with runs.writer() as writer:
            table = storage_columns(block)
            for records in encoded_table(table, raw=raw, threads=processors_of_task()):
                writer.write_batch(records)
    except (RecordError, OSError, ValueError) as error:
        return {"path": [""], "error": [pickle.dumps(error)]}
    return {"path": [writer.path], "error": [b""]}
