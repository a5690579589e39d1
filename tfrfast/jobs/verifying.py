"""Checks every checksum of every record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, NamedTuple

from tfrfast.base.refused_arguments import explains_arguments
from tfrfast.base.tables import summary
from tfrfast.jobs.chosen_records import ChosenRecords, ShardSizes, cut_rows
from tfrfast.jobs.cutting import grouped, part_bytes, size_of
from tfrfast.jobs.running import Advance, Task, Workers
from tfrfast.reader import Reader, Skipped, all_damage
from tfrfast.storage.paths import Paths, expand_paths
from tfrfast.storage.remote.options import Storage, storage_of
from tfrfast.storage.schemes import is_url

__all__ = ["Verified", "verify"]

_STEP_BYTES = 16 << 20


class Verified(NamedTuple):
    """The result of `tfr.verify`."""

    num_shards: int
    #: Records with correct checksums.
    num_records: int
    #: Bytes of all shards.
    num_bytes: int
    #: The damaged places, in order.
    damage: list[Skipped]

    def __repr__(self) -> str:
        return summary(self)


@explains_arguments
def verify(
    paths: Paths,
    *,
    threads: int | None = None,
    progress: bool | None = None,
    executor: Executor | None = None,
    storage: Mapping[str, Any] | Storage | None = None,
) -> Verified:
    """Reads every record of shards, and checks both its checksums.

        found = tfr.verify("data/train-*")
        assert not found.damage, found.damage

    Damage is not an error here. Raises OSError if a shard cannot be read.

    Args:
      paths: as for Reader.
      threads: the number of shards that are read at a time, without an `executor`. By default the
        number of processors that this process may use.
      progress: True or False shows or hides a bar on stderr. By default it appears on a terminal,
        after a second.
      executor: reads, instead of threads of this process: `ProcessPoolExecutor()`, or any other
        `concurrent.futures.Executor`. Its processes must see the same files under the same names.
        See docs/ray.md.
      storage: how to reach URLs, as for Reader.
    """
    workers = Workers(executor, threads, progress)
    reached = storage_of(storage)
    shards = expand_paths(paths, reached)
    parts = list(workers.run("Verifying", plan_verification(shards, workers, reached)))
    return Verified(
        len(shards),
        sum(part.num_records for part in parts),
        sum(part.num_bytes for part in parts),
        all_damage(*(part.damage for part in parts)),
    )


def plan_verification(
    shards: Sequence[str], workers: Workers, storage: Storage
) -> list[Task[Verified]]:
    """Returns the tasks. Shards that are much larger than a task are divided."""
    sizes = [size_of(shard) for shard in shards]
    target = part_bytes(sum(sizes), workers.count)
    tasks: list[Task[Verified]] = []
    large: list[str] = []
    for group, size in grouped(shards, sizes, workers.count):
        # Finding this shard's records reads the whole shard, and each part would repeat that.
        is_slow_to_divide = is_url(group[0]) and (
            workers.executor is not None or len(shards) >= workers.count
        )
        if size > 2 * target and workers.count > 1 and not is_slow_to_divide:
            large += group
        else:
            tasks.append(_WholeShards(group, size, storage))
    if large:
        tasks += _divided(large, target, workers, storage)
    return tasks


def _divided(
    shards: list[str], target: int, workers: Workers, storage: Storage
) -> Iterator[Task[Verified]]:
    """Yields parts of large shards. The shards are opened together, so that several are walked
    through at a time.
    """
    reader = Reader(
        shards,
        on_corruption="skip",
        # Other processes find a kept index. Without it, each would build one.
        index="memory" if workers.executor is None else "auto",
        threads=workers.count,
        progress=False,
        storage=storage,
    )
    empty = [shard.path for shard in reader.shards if not shard.num_records]
    if empty:  # the whole shard is damaged, and no task of records would count the damage
        yield from (_WholeShards([shard], size_of(shard), storage) for shard in empty)
        others = [shard for shard in shards if shard not in empty]
        if others:
            yield from _divided(others, target, workers, storage)
        return
    known = ShardSizes(reader)
    for rows in cut_rows(known, target):
        yield _SomeRecords(ChosenRecords(known, rows), known.bytes_of(rows))


@dataclass
class _WholeShards:
    """Finds the records of shards without an index, and checks them."""

    shards: list[str]
    amount: int
    storage: Storage

    def run(self, advance: Advance) -> Verified:
        with Reader(
            self.shards,
            on_corruption="skip",
            index="memory",
            threads=1,
            progress=False,
            storage=self.storage,
        ) as reader:
            known = ShardSizes(reader)
            good = _count_good(known, range(len(reader)), advance)
            # Damage after the last record counts, too.
            num_bytes = sum(known.sizes)
            advance(self.amount - known.bytes_of(range(len(reader))))
            return Verified(len(self.shards), good, num_bytes, reader.skipped)


@dataclass
class _SomeRecords:
    """Checks some records of a large shard."""

    rows: ChosenRecords
    amount: int

    def run(self, advance: Advance) -> Verified:
        reader = self.rows.reader
        assert isinstance(self.rows.numbers, range)
        good = _count_good(ShardSizes(reader), self.rows.numbers, advance)
        return Verified(0, good, self.amount, reader.skipped)


def _count_good(shards: ShardSizes, numbers: range, advance: Advance) -> int:
    good = 0
    at = numbers.start
    while at < numbers.stop:
        end, newly_good = shards.reader._core.verify_from(at, numbers.stop, _STEP_BYTES)
        good += newly_good
        advance(shards.bytes_of(range(at, end)))
        at = end
    return good
