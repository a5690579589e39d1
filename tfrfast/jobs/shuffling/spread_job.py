"""The work of `tfr.shuffle` as tasks of an executor."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor
from functools import cached_property
from typing import TypeVar

import numpy as np

from tfrfast import _native
from tfrfast.base.arguments import Int64Array
from tfrfast.jobs.chosen_records import ChosenRecords, ShardSizes
from tfrfast.jobs.copying import without_damage
from tfrfast.jobs.running import Task, Workers, run_tasks
from tfrfast.jobs.shuffling.dividing import RECORD_BYTES, Divide
from tfrfast.jobs.shuffling.inputs import Inputs
from tfrfast.jobs.shuffling.job import ShuffleJob, equal_parts
from tfrfast.jobs.shuffling.joining import Join
from tfrfast.jobs.shuffling.resumable_folder import ResumableFolder
from tfrfast.jobs.shuffling.target import Target
from tfrfast.jobs.shuffling.task_folder import TaskFolder
from tfrfast.reader import Reader, Skipped, all_damage
from tfrfast.storage.paths import absolute_path

Result = TypeVar("Result")

# Enough tasks of each kind for the processors of a cluster, unless the tasks would be small.
_TASKS = 128
_SMALL_TASK_BYTES = 64 << 20


class SpreadJob(ShuffleJob):
    """Divides the input into files by new places, then joins the parts of the files to shards.

    A part is a range of places that fits in memory. The first key of each part is computed, so the
    part's number of records is known. The results of tasks stay in the work folder. If the job is
    run again, its tasks return these results.
    """

    def __init__(
        self,
        inputs: Inputs,
        target: Target,
        memory: int,
        work: ResumableFolder,
        progress: bool | None,
        skip_damage: bool,
        executor: Executor,
    ) -> None:
        self._executor = executor
        super().__init__(inputs, target, memory, work, progress, skip_damage)
        self._task_folder = TaskFolder(os.path.join(absolute_path(work.path), self._plan[:16]))

    def _cut(self, memory: int) -> str:
        self._num_buckets = 0  # of this process
        self._memory = memory // 2  # the other half is for reading and writing
        return f"tasks, {self._memory} bytes each"

    @cached_property
    def _reader(self) -> Reader:
        return Reader(
            self._inputs.shards,
            storage=self._inputs.storage,
            on_corruption="skip" if self._skip_damage else "raise",
            progress=self._progress,
        )

    def _refuse_empty_shards_at_once(self) -> None:
        self._refuse_more_shards_than(len(self._reader))

    def _make_shards(self) -> None:
        self._work.save()
        os.makedirs(self._task_folder.folder, exist_ok=True)
        self._task_folder.remove_unfinished()
        numbers = self._numbers()
        self._refuse_more_shards_than(len(numbers))
        total = sum(each._stream_bytes for each in self._reader.shards)
        total += RECORD_BYTES * len(numbers)
        # Half-empty runs would double the number of reads.
        task_bytes = min(self._memory * 7 // 8, max(_SMALL_TASK_BYTES, total // _TASKS))
        limit = max(1, task_bytes * len(numbers) // max(total, 1))
        shards = [
            (output, records)
            for output, wanted in enumerate(self._records_of_outputs(len(numbers)))
            for records in equal_parts(wanted, self._outputs[output].num_shards)
        ]
        groups = list(_grouped(shards, limit))
        counts = [count for _, some in groups for count in some]
        places = [0, *itertools.accumulate(counts)]
        keys = _native.shuffle_keys_at(places, len(numbers), self._target.seed)
        runs = []
        totals = []
        for some, its_totals in self._run(self._divisions(numbers, limit, keys)):
            runs.append(np.array(some, np.int64))
            totals.append(its_totals)
        self._state["totals"] = _sum(totals)
        self._state["written"] = [
            written for some in self._run(self._joins(groups, runs)) for written in some
        ]

    def _numbers(self) -> range | Int64Array:
        """Returns the numbers of the intact records."""
        every = range(len(self._reader))
        if not self._skip_damage:
            return every
        skipped: set[Skipped] = set()
        shards = ShardSizes(self._reader)
        workers = Workers(self._executor, progress=self._progress)
        good = without_damage(shards, np.array(every), workers, skipped)
        self._state["skipped"] = all_damage(skipped, self._reader.skipped)
        return good

    def _divisions(
        self, numbers: range | Int64Array, limit: int, keys: list[int]
    ) -> Iterator[Divide]:
        shards = ShardSizes(self._reader)
        for number, first in enumerate(range(0, len(numbers), limit)):
            some = numbers[first : first + limit]
            ends = np.searchsorted(shards.starts, [some[0], some[-1]], side="right")
            used = slice(int(ends[0]) - 1, int(ends[1]))
            yield Divide(
                ChosenRecords(shards, some),
                first,
                self._bytes * len(some) // len(numbers),
                keys,
                self._target.seed,
                self._memory,
                self._inputs.shards[used],
                self._inputs.states[used],
                self._inputs.storage,
                self._task_folder,
                f"divided-{number}",
            )

    def _joins(
        self, groups: Sequence[tuple[list[tuple[int, int]], list[int]]], runs: Sequence[Int64Array]
    ) -> Iterator[Join]:
        files = [f"divided-{number}" for number, some in enumerate(runs) for _ in some]
        parts = sum(len(counts) for _, counts in groups)
        offsets = np.concatenate([np.empty((0, parts + 1), np.int64), *runs])
        part = 0
        for number, (shards, counts) in enumerate(groups):
            yield Join(
                files,
                offsets[:, part : part + len(counts) + 1],
                counts,
                shards,
                self._bytes * sum(counts) // max(self._state["totals"][0], 1),
                self._target.seed,
                self._unpublished,
                self._task_folder,
                f"joined-{number}",
            )
            part += len(counts)

    def _run(self, tasks: Iterator[Task[Result]]) -> Iterator[Result]:
        return run_tasks(list(tasks), self._executor, None, self._advance)


def _grouped(
    shards: Sequence[tuple[int, int]], limit: int
) -> Iterator[tuple[list[tuple[int, int]], list[int]]]:
    """Yields runs of shards with at most `limit` records, or one larger shard, and their parts."""
    group: list[tuple[int, int]] = []
    held = 0
    for output, records in shards:
        if group and held + records > limit:
            yield group, equal_parts(held, max(1, -(-held // limit)))
            group, held = [], 0
        group.append((output, records))
        held += records
    yield group, equal_parts(held, max(1, -(-held // limit)))


def _sum(totals: Iterable[Sequence[int]]) -> list[int]:
    records, payload_bytes, content_hash = np.array([(0, 0, 0), *totals], np.uint64).sum(0).tolist()
    return [records, payload_bytes, content_hash]
