"""Roads that write records from memory, as a model reads them back."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from typing import Any

import tfrfast as tfr
from job_roads import written
from road import ORDERED, PUBLISHES, WRITES, Opened, Road, Task
from tfrecord_model import scan
from truth import Item


def writer(write: Callable[[Task], Iterator[Item]]) -> Callable[[Task], Opened]:
    return lambda task: Opened(lambda: write(task))


def _put(made: Any, task: Task) -> None:
    """Writes one by one, or in batches."""
    if task.chosen.random() < 0.5:
        for record in task.records:
            made.write(record)
    else:
        for begin in range(0, len(task.records), 50):
            made.write_batch(task.records[begin : begin + 50])


def plain(task: Task) -> Iterator[Item]:
    path = task.folder / "new"
    with tfr.Writer(path, overwrite=True, sync=task.chosen.random() < 0.2) as made:
        _put(made, task)
    return written([str(path)])


def packed(task: Task) -> Iterator[Item]:
    path = task.folder / "new.gz"
    with tfr.Writer(path, overwrite=True, sync=False, compression="GZIP") as made:
        _put(made, task)
    frames, damage = scan(gzip.decompress(path.read_bytes()))
    assert damage == [each for each in frames if not each.payload_is_good] == [], path
    return ((None, each.payload) for each in frames)


def sharded(task: Task) -> Iterator[Item]:
    with tfr.ShardedWriter(task.folder / "new", num_shards=3, overwrite=True, sync=False) as made:
        _put(made, task)
    return written(made.paths)


_WRITES = frozenset({WRITES, PUBLISHES})

ROADS = [
    Road("Writer", writer(plain), _WRITES | {ORDERED}),
    Road("Writer, GZIP", writer(packed), _WRITES | {ORDERED}),
    Road("ShardedWriter", writer(sharded), _WRITES),
]
