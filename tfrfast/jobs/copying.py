"""Chosen records as new shards, for filters, samples, splits and joins."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, NamedTuple, SupportsIndex

import numpy as np
import numpy.typing as npt

from tfrfast.base.arguments import Int64Array, integer
from tfrfast.base.progress import ProgressBar
from tfrfast.base.refused_arguments import explains_arguments
from tfrfast.base.tables import summary
from tfrfast.columns.rows import row_numbers
from tfrfast.jobs.chosen_records import ChosenRecords, ShardSizes
from tfrfast.jobs.running import Advance, num_workers, run_tasks
from tfrfast.loading.records import open_reader
from tfrfast.reader import Reader, Skipped, all_damage
from tfrfast.storage.output import open_output
from tfrfast.storage.paths import Paths
from tfrfast.writing.options import Compression, FilePath, IndexFolder
from tfrfast.writing.shard_set import ShardSet, Unpublished

__all__ = ["Copied", "copy"]

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
      compression, level, index, index_folder, sync, overwrite: as for `tfr.ShardedWriter`.
      progress: True or False shows or hides a bar on stderr. By default it appears on a terminal,
        after a second.
      executor: writes the shards, instead of threads of this process: `ProcessPoolExecutor()`, or
        any other `concurrent.futures.Executor`. Its processes must see the same files under the
        same names. If `out` is a URL, this process writes and uploads the shards nevertheless.
      storage: how to reach URLs, as for Reader, for `source` and `out` alike.

    Every record's checksums are verified, even if the Reader does not verify. Raises the errors of
    reading. With `on_corruption="skip"`, damaged records are left out.
    """
    if num_shards is not None and max_bytes is not None:
        raise ValueError("Say either num_shards or max_bytes.")
    if storage is not None and not isinstance(source, Reader):
        reader_options["storage"] = storage
    reader = _verifying_anew(open_reader(source, reader_options))
    numbers = row_numbers(records, len(reader), "Record")
    count = None if max_bytes is not None else _count(num_shards)
    output = open_output(
        out, storage, index=index, index_folder=index_folder, sync=sync, overwrite=overwrite
    )
    with contextlib.ExitStack() as stack:
        stack.callback(output.discard)
        output.refuse_taken([output.path])
        shard_set = stack.enter_context(
            ShardSet(output, num_shards=count, compression=compression, level=level)
        )
        known = ShardSizes(reader)
        skipped: set[Skipped] = set()
        if reader._skips_damage:
            numbers = _without_damage(known, numbers, executor, progress, skipped)
        ends = _equal_ends(len(numbers), count) if count else _ends(known, numbers, max_bytes)
        tasks = plan_shards(known, numbers, ends, shard_set.unpublished)
        with ProgressBar("Copying", progress, "records") as bar:
            # One machine uploads, from a folder of its own.
            writes = None if output.is_remote else executor
            written = list(run_tasks(tasks, writes, _threads(reader), bar.adding(len(numbers))))
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
) -> list[_WriteShard]:
    """Returns the tasks, one for each new shard."""
    size = shards.reader._records_within(_PIECE_BYTES)
    return [
        _WriteShard(ChosenRecords(shards, numbers[first:end]), int(end - first), size, unpublished)
        for first, end in zip(np.concatenate([[0], ends[:-1]]), ends, strict=True)
    ]


@dataclass
class _WriteShard:
    """Writes a shard into the work folder."""

    rows: ChosenRecords
    amount: int
    step: int
    unpublished: Unpublished

    def run(self, advance: Advance) -> Copied:
        reader = self.rows.reader
        with self.unpublished.writer() as writer:
            for numbers in _pieces(self.rows, self.step):
                writer.write_batch(reader.read(numbers))
                advance(len(numbers))
        return Copied([writer.path], writer.num_records, writer.num_bytes, reader.skipped)


@dataclass
class _FindGood:
    """Finds the intact records."""

    rows: ChosenRecords
    amount: int
    step: int

    def run(self, advance: Advance) -> tuple[npt.NDArray[np.bool_], list[Skipped]]:
        reader = self.rows.reader
        good = []
        for each in _pieces(self.rows, self.step):
            good.append(np.isin(each, reader.read(each).indices))
            advance(len(each))
        return np.concatenate([np.empty(0, np.bool_), *good]), reader.skipped


def _without_damage(
    shards: ShardSizes,
    numbers: Int64Array,
    executor: Executor | None,
    progress: bool | None,
    skipped: set[Skipped],
) -> Int64Array:
    threads = _threads(shards.reader)
    size = shards.reader._records_within(_PIECE_BYTES)
    pieces = len(numbers) // (size * 8 * num_workers(executor, threads))
    part = size * min(max(1, pieces), _CHECKED_PIECES)
    some = [numbers[first : first + part] for first in range(0, len(numbers), part)]
    tasks = [_FindGood(ChosenRecords(shards, each), len(each), size) for each in some]
    good = [numbers[:0]]
    with ProgressBar("Checking", progress, "records") as bar:
        found = run_tasks(tasks, executor, threads, bar.adding(len(numbers)))
        for each, (is_good, damage) in zip(some, found, strict=True):
            good.append(each[is_good])
            skipped.update(damage)
    return np.concatenate(good)


def _count(num_shards: SupportsIndex | None) -> int:
    return 1 if num_shards is None else integer("num_shards", num_shards, 1, 10**6)


def _threads(reader: Reader) -> int | None:
    threads: int | None = reader._options["threads"]
    return threads


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
    reached = np.concatenate([[0], np.cumsum(sizes)])
    ends = [0]
    while ends[-1] < len(numbers):
        first = ends[-1]
        last = int(np.searchsorted(reached, reached[first] + limit, side="right")) - 1
        ends.append(max(first + 1, last))
    return np.array(ends[1:] or ends, np.int64)


def _verifying_anew(reader: Reader) -> Reader:
    """Returns the reader, or a new reader of the same files that checks payloads and has skipped no
    record.
    """
    reader._frames()
    passed_over = any(each.records is not None for each in reader.skipped)
    if reader._options["verify"] == "full" and not passed_over:
        return reader
    return Reader(reader._paths, **{**reader._options, "verify": "full"})


def _pieces(rows: ChosenRecords, size: int) -> Iterator[Int64Array]:
    numbers = rows.numbers
    assert not isinstance(numbers, range)
    for first in range(0, len(numbers), size):
        yield numbers[first : first + size]
