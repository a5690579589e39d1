"""The first kind of a shuffle's tasks: a range of records, divided by their new places."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tfrfast import _native
from tfrfast.base.arguments import Int64Array
from tfrfast.errors import StaleIndexError
from tfrfast.jobs.chosen_records import ChosenRecords, ShardSizes
from tfrfast.jobs.cutting import filled
from tfrfast.jobs.running import Advance
from tfrfast.jobs.shuffling.inputs import Inputs
from tfrfast.jobs.shuffling.task_folder import TaskFolder
from tfrfast.storage.remote.options import Storage

#: A record's bytes in memory, beside its own: its frame, its number, its place in the order.
RECORD_BYTES = 48
_MAX_READ_BYTES = 16 << 20

#: For each run of a file: the bytes at which its parts begin, and the end.
Runs = list[list[int]]
Totals = tuple[int, int, int]


@dataclass
class Divide:
    """Writes records, in their new order, to one file, in runs that fit in memory.

    `first` is the number of the first record, which fixes its key. `keys` are the first keys of the
    parts, and the end.
    """

    rows: ChosenRecords
    first: int
    amount: int
    keys: list[int]
    seed: int
    memory: int
    #: The shards and their versions at the survey.
    shards: list[str]
    versions: list[str]
    storage: Storage
    task_folder: TaskFolder
    name: str

    def run(self, advance: Advance) -> tuple[Runs, Totals]:
        division: tuple[Runs, Totals] | None = self.task_folder.result(self.name)
        if division is None:
            division = self._divide()
        advance(self.amount)
        return division

    def _divide(self) -> tuple[Runs, Totals]:
        self._check_versions()
        numbers = np.asarray(self.rows.numbers)
        costs = ShardSizes(self.rows.reader).lengths_of(numbers) + RECORD_BYTES
        runs: Runs = []
        sums = [0, 0, 0]
        size = 0
        with self.task_folder.new_file() as path:
            for run in filled(costs, self.memory):
                totals, bucket = self._read(numbers, costs, run)
                sums = [a + b for a, b in zip(sums, totals, strict=True)]
                ends = bucket.append_to(path, self.keys)
                runs.append([size + end for end in ends])
                size += ends[-1]
            self._check_versions()
            division = runs, (sums[0], sums[1], sums[2] % 2**64)
            self.task_folder.keep(self.name, division, path)
        return division

    def _read(
        self, numbers: Int64Array, costs: Int64Array, run: range
    ) -> tuple[Totals, _native.ShuffledBucket]:
        first = self.first + run.start
        buckets = _native.ShuffleBuckets("", 0, self.seed, (first, 0, 0), [0], [0])
        for some in self._pieces_of(costs, run):
            buckets.add_batch(self.rows.reader.read(numbers[some.start : some.stop]))
        records, payload_bytes, content_hash = buckets.totals
        if records - first != len(run):  # with on_corruption="skip"
            raise self._changed(self.shards[0])
        return (len(run), payload_bytes, content_hash), buckets.take(0)

    def _pieces_of(self, costs: Int64Array, run: range) -> Iterator[range]:
        limit = min(_MAX_READ_BYTES, self.memory // 4)
        for some in filled(costs[run.start : run.stop], limit):
            yield range(run.start + some.start, run.start + some.stop)

    def _check_versions(self) -> None:
        now = Inputs(self.shards, self.storage).states
        for shard, before, found in zip(self.shards, self.versions, now, strict=True):
            if before != found:
                raise self._changed(shard)

    def _changed(self, shard: str) -> StaleIndexError:
        return StaleIndexError(
            f"{shard!r} has changed since the shuffle has counted its records, or this machine "
            "sees another file. Call the shuffle again: it begins from the start.",
            path=shard,
        )
