"""Chosen records as new shards, for filters, samples, splits and joins."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, NamedTuple, SupportsIndex

import numpy as np
import numpy.typing as npt

from tfrfast.base.arguments import Int64Array, integer
from tfrfast.base.refused_arguments import explains_arguments
from tfrfast.base.tables import summary
from tfrfast.columns.rows import row_numbers
from tfrfast.jobs.chosen_records import ChosenRecords, OfRecords, ShardSizes
from tfrfast.jobs.cutting import filled
from tfrfast.jobs.running import Advance, Workers
from tfrfast.loading.records import open_reader
from tfrfast.reader import Reader, Skipped, all_damage
from tfrfast.storage.paths import Paths
from tfrfast.writing.appending import appended_compression, open_set
from tfrfast.writing.options import Compression, FilePath, IndexFolder
from tfrfast.writing.shard_set import ShardSet, Unpublished

__all__ = ["Copied", "WriteShard", "copy", "verifying_anew", "without_damage"]

_PIECE_BYTES = 16 << 20
# The bytes that a task checks, in pieces.
_CHECKED_PIECES = 16
_FRAME_BYTES = 16  # around each record


class Copied(NamedTuple):
    """The result of `tfr.copy`."""

    paths: list[str]
    num_records: int
    #: Bytes of all shards.
    num_bytes: int
    #: The skipped damage: requested records, and bytes of the source that hold an unknown number of
    #: records.
    skipped: list[Skipped]

    def __repr__(self) -> str:
        return summary(self)


@explains_arguments
def copy(
    source: Reader | Paths,
    records: Any,
    out: FilePath,
    *,
    num_shards: SupportsIndex | None = None,
    max_bytes: SupportsIndex | None = None,
    compression: Compression | None = None,
    level: int | None = None,
    index: bool = True,
    index_folder: IndexFolder = None,
    sync: bool = True,
    overwrite: bool = False,
    append: bool = False,
    progress: bool | None = None,
    executor: Executor | None = None,
    storage: Mapping[str, Any] | None = None,
    **reader_options: Any,
) -> Copied:
    """Writes the records with these numbers, byte for byte and in this order, to new shards.

        frame = tfrfast.polars.scan("data/train-*", features=features, record_column=True)
        cats = frame.filter(pl.col("label") == 3).select("record").collect()
        made = tfr.copy("data/train-*", cats["record"], "out/cats", num_shards=8)

    Returns a `Copied`: the new paths and the counts. Shards appear under their names when all
    shards are complete. Until then they are in a hidden folder beside `out`.

    Args:
      source: a Reader, or anything that Reader takes; `reader_options` are passed on to it.
      records: numbers of records, a slice or a mask. Numbers may come from any library whose
        columns NumPy takes as an array, and may occur more than once.
      out: the beginning of the new shards' names: `out/cats` makes `out/cats-00000-of-00008`.
      num_shards: the number of shards. Each shard has a run of the given order, and shards differ
        by at most one record. By default, without `max_bytes`, one shard.
      max_bytes: instead of `num_shards`, the largest size of a shard.
      compression, level, index, index_folder, sync, overwrite, append: as for `tfr.ShardedWriter`.
      progress: as for `tfr.verify`.
      executor: writes the shards, instead of threads of this process, as for `tfr.verify`. If `out`
        is a URL, this process writes and uploads the shards nevertheless.
      storage: how to reach URLs, as for Reader, for `source` and `out` alike.

    Every record's checksums are verified, even if the Reader does not verify. Raises the errors of
    reading. With `on_corruption="skip"`, damaged records are left out.
    """
    if num_shards is not None and max_bytes is not None:
        raise ValueError("Say either num_shards or max_bytes.")
    if storage is not None and not isinstance(source, Reader):
        reader_options["storage"] = storage
    reader = verifying_anew(open_reader(source, reader_options))
    workers = Workers(executor, reader._options["threads"], progress)
    numbers = row_numbers(records, len(reader), "Record")
    count = None if max_bytes is not None else _count(num_shards)
    output = open_set(
        out,
        storage,
        append=append,
        index=index,
        index_folder=index_folder,
        sync=sync,
        overwrite=overwrite,
    )
    with contextlib.ExitStack() as stack:
        stack.callback(output.discard)
        output.refuse_taken([output.path])
        shard_set = stack.enter_context(
            ShardSet(
                output,
                num_shards=count,
                compression=appended_compression(output, compression),
                level=level,
            )
        )
        known = ShardSizes(reader)
        skipped: set[Skipped] = set()
        if reader._skips_damage:
            numbers = without_damage(known, numbers, workers, skipped)
        ends = _equal_ends(len(numbers), count) if count else _ends(known, numbers, max_bytes)
        tasks = plan_shards(known, numbers, ends, shard_set.unpublished)
        if output.is_remote:  # one machine uploads, from a folder of its own
            workers = Workers(None, workers.threads, progress)
        written = list(workers.run("Copying", tasks, "records"))
        paths = output.publish(shard_set.publish([each.paths[0] for each in written]))
    return Copied(
        paths,
        sum(each.num_records for each in written),
        sum(each.num_bytes for each in written),
        # Tasks in other processes open only the shards that they read.
        all_damage(skipped, reader.skipped, *(each.skipped for each in written)),
    )


def plan_shards(
    shards: ShardSizes, numbers: Int64Array, ends: Int64Array, unpublished: Unpublished
) -> list[WriteShard]:
    """Returns the tasks, one for each new shard."""
    return [
        WriteShard(ChosenRecords(shards, numbers[first:end]), unpublished)
        for first, end in zip(np.concatenate([[0], ends[:-1]]), ends, strict=True)
    ]


@dataclass
class WriteShard(OfRecords):
    """Writes a shard into the work folder."""

    unpublished: Unpublished

    def run(self, advance: Advance) -> Copied:
        reader = self.rows.reader
        with self.unpublished.writer() as writer:
            for numbers in self.rows.pieces(_PIECE_BYTES, advance):
                writer.write_batch(reader.read(numbers))
        return Copied([writer.path], writer.num_records, writer.num_bytes, reader.skipped)


class _FindGood(OfRecords):
    """Finds the intact records."""

    def run(self, advance: Advance) -> tuple[npt.NDArray[np.bool_], list[Skipped]]:
        reader = self.rows.reader
        good = [
            np.isin(each, reader.read(each).indices)
            for each in self.rows.pieces(_PIECE_BYTES, advance)
        ]
        return np.concatenate([np.empty(0, np.bool_), *good]), reader.skipped


def without_damage(
    shards: ShardSizes, numbers: Int64Array, workers: Workers, skipped: set[Skipped]
) -> Int64Array:
    """Returns the numbers of the intact records, and adds the damage to `skipped`."""
    size = shards.reader._records_within(_PIECE_BYTES)
    pieces = len(numbers) // (size * 8 * workers.count)
    part = size * min(max(1, pieces), _CHECKED_PIECES)
    some = [numbers[first : first + part] for first in range(0, len(numbers), part)]
    tasks = [_FindGood(ChosenRecords(shards, each)) for each in some]
    good = [numbers[:0]]
    # An error ends all tasks before it is raised.
    with contextlib.closing(workers.run("Checking", tasks, "records")) as found:
        for each, (is_good, damage) in zip(some, found, strict=True):
            good.append(each[is_good])
            skipped.update(damage)
    return np.concatenate(good)


def _count(num_shards: SupportsIndex | None) -> int:
    return 1 if num_shards is None else integer("num_shards", num_shards, 1, 10**6)


def _equal_ends(count: int, num_shards: int) -> Int64Array:
    """Returns the end of each shard if shards differ by at most one record. Larger shards come
    first.
    """
    sizes = np.full(num_shards, count // num_shards, np.int64)
    sizes[: count % num_shards] += 1
    return np.cumsum(sizes)


def _ends(shards: ShardSizes, numbers: Int64Array, max_bytes: SupportsIndex | None) -> Int64Array:
    """Returns the end of each shard if shards are filled one after the other."""
    assert max_bytes is not None
    limit = integer("max_bytes", max_bytes, 1, 2**63 - 1)
    sizes = shards.lengths_of(numbers) + _FRAME_BYTES
    return np.array([run.stop for run in filled(sizes, limit)] or [0], np.int64)


def verifying_anew(reader: Reader) -> Reader:
    """Returns the reader, or a new reader of the same files that checks payloads and has skipped no
    record.
    """
    reader._frames()
    passed_over = any(each.records is not None for each in reader.skipped)
    if reader._options["verify"] == "full" and not passed_over:
        return reader
    return Reader(reader._absolute_paths(), **{**reader._options, "verify": "full"})
