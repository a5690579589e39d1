"""The cases that are measured: three shapes of data, in order and shuffled, raw and decoded, warm
and cold, on one thread and on all."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from typing import NamedTuple

from benchmarks.datasets import DATA_SETS, gzip_shards_of, shards_of
from tfrfast.bench.pipelines import Work
from tfrfast.bench.shapes import SHAPES


class Case(NamedTuple):
    data: str
    shuffled: bool
    decoded: bool
    cold: bool = False
    threads: int | None = None
    """The number of threads; None: each contender chooses."""
    compression: str = ""

    @property
    def work(self) -> Work:
        shape = SHAPES[self.data]
        features = shape.features if self.decoded else None
        files = (gzip_shards_of if self.compression else shards_of)(self.data)
        return Work(files, shape.batch_size, self.shuffled, features, compression=self.compression)

    def __str__(self) -> str:
        words = [
            self.data,
            *([self.compression] if self.compression else []),
            "decoded" if self.decoded else "records",
            "shuffled" if self.shuffled else "in order",
            "cold" if self.cold else "warm",
        ]
        if self.threads is not None:
            words.append(f"{self.threads} thread{'s' if self.threads > 1 else ''}")
        return ", ".join(words)


def all_cases() -> Iterator[Case]:
    for data in DATA_SETS:
        for decoded, shuffled in itertools.product((False, True), repeat=2):
            yield Case(data, shuffled, decoded)
    for data in ("ctr", "mnist"):
        for decoded in (False, True):
            yield Case(data, False, decoded, compression="GZIP")
    for data in DATA_SETS:
        for threads in _thread_counts():
            yield Case(data, True, True, threads=threads)
    # Cold cases do not decode, because decoding reads the same bytes.
    for data, shuffled in itertools.product(DATA_SETS, (False, True)):
        yield Case(data, shuffled, False, cold=True)


def _thread_counts() -> list[int]:
    """1, 2, 4, ... and the number of all processors."""
    most = os.cpu_count() or 1
    return sorted({1 << bits for bits in range(most.bit_length())} | {most})
