"""The second kind of a shuffle's tasks: new shards from their parts of all divided files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from tfrfast import _native
from tfrfast.base.arguments import UNLIMITED, Int64Array
from tfrfast.jobs.running import Advance
from tfrfast.jobs.shuffling.sorted_rows import SortedRows, Written
from tfrfast.jobs.shuffling.task_folder import TaskFolder
from tfrfast.storage.remote.options import Storage
from tfrfast.writing.shard_set import Unpublished


@dataclass
class Join:
    """Writes consecutive shards. Sorts one part at a time in memory."""

    #: The file of each run.
    files: list[str]
    #: For each run, the bytes at which its parts begin, and the end.
    offsets: Int64Array
    #: The number of records of each part.
    counts: list[int]
    #: The output and the number of records of each shard.
    shards: list[tuple[int, int]]
    amount: int
    seed: int
    unpublished: Unpublished
    task_folder: TaskFolder
    name: str

    def run(self, advance: Advance) -> list[Written]:
        joined: Any = self.task_folder.result(self.name)
        if joined is None or not all(self._exists(name) for name, *_ in joined):
            rows = SortedRows(self._take, self.counts)
            joined = [
                rows.write_shard(self.unpublished, output, records, UNLIMITED, lambda _: None)
                for output, records in self.shards
            ]
            self.task_folder.keep(self.name, joined)
        advance(self.amount)
        return [tuple(each) for each in joined]

    def _exists(self, name: str) -> bool:
        return os.path.exists(self.unpublished.path(name))

    def _take(self, part: int) -> _native.ShuffledBucket:
        places = [
            (self.task_folder.path(file), begin, end - begin)
            for file, (begin, end) in zip(
                self.files, self.offsets[:, part : part + 2].tolist(), strict=True
            )
            if begin < end
        ]
        return _native.ShuffledBucket.read(places, self.seed, self.counts[part], Storage(None).core)
