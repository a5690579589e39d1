"""Measures records a second and processor time, by turns. A turn is an epoch, with its iter()."""

from __future__ import annotations

import gc
import os
import statistics
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

import tfrfast as tfr
from tfrfast.bench.pipelines import Epoch

_IDLE_PROBE_S = 0.05

Builder = Callable[[list[str]], Epoch]
"""Builds a pipeline over these files. Calling the pipeline starts an epoch."""


class Turn(NamedTuple):
    records_per_s: float
    processor_s_per_million: float
    """Processor time of all threads of this process, for a million records."""


class Rates(NamedTuple):
    """The figures of each round, measured on the first `shards` files."""

    records_per_s: list[float]
    processor_s_per_million: list[float]
    shards: int

    @property
    def median(self) -> float:
        return statistics.median(self.records_per_s)


def time_epoch(start: Epoch, batch_size: int, num_records: int) -> Turn:
    """Reads an epoch of `num_records` records. Its last batch may be smaller."""
    batches = 0
    began, used = time.perf_counter(), time.process_time()
    for _ in start():
        batches += 1
    took, used = time.perf_counter() - began, time.process_time() - used
    records = min(batches * batch_size, num_records)
    return Turn(records / took, used * 1e6 / records)


def rates_in_turns(
    builders: Mapping[str, Builder],
    files: list[str],
    batch_size: int,
    rounds: int,
    limit_s: float,
    cold: bool = False,
) -> dict[str, Rates]:
    """Measures all contenders by turns.

    When warm, each pipeline is built once, and has one turn before the rounds that does not count.
    If a contender needs longer than `limit_s` for all files, it reads only the first files, as many
    as the limit allows, and at least one.

    When cold, the files are dropped from memory before every turn, and every contender reads all
    files. Each turn builds its pipeline again, because mapped pages cannot be dropped.
    """
    chosen = {
        name: files if cold else files[: _affordable(build, files, batch_size, limit_s)]
        for name, build in builders.items()
    }
    sizes = {count: _count_records(files[:count]) for count in set(map(len, chosen.values()))}
    rates = {name: Rates([], [], len(chosen[name])) for name in builders}
    built = {} if cold else {name: build(chosen[name]) for name, build in builders.items()}
    for round_number in range(0 if cold else -1, rounds):
        for name, build in builders.items():
            if cold:
                drop_from_memory(files)
            # No variable holds a cold pipeline: it would keep its files mapped in the next turn.
            turn = time_epoch(built.get(name) or build(files), batch_size, sizes[len(chosen[name])])
            wait_until_idle()
            if round_number >= 0:
                rates[name].records_per_s.append(turn.records_per_s)
                rates[name].processor_s_per_million.append(turn.processor_s_per_million)
    return rates


def _affordable(build: Builder, files: list[str], batch_size: int, limit_s: float) -> int:
    """Returns how many of the files an epoch can read in `limit_s`, judged by the first file."""
    start, records = build(files[:1]), _count_records(files[:1])
    time_epoch(start, batch_size, records)  # the first epoch may have to prepare something
    took = records / time_epoch(start, batch_size, records).records_per_s
    wait_until_idle()
    return max(1, min(len(files), int(limit_s / took)))


def _count_records(files: list[str]) -> int:
    with tfr.Reader(files) as reader:
        return len(reader)


def wait_until_idle(longest_s: float = 10) -> None:
    """Waits until this process uses no more processor time.

    After a turn, threads may still read ahead for an iterator that is gone.
    """
    gc.collect()
    end = time.perf_counter() + longest_s
    while time.perf_counter() < end:
        used = time.process_time()
        time.sleep(_IDLE_PROBE_S)
        if time.process_time() - used < _IDLE_PROBE_S / 20:
            return


def drop_from_memory(paths: list[str]) -> None:
    """Drops the files from the page cache, which needs no privilege once they are written back.

    Raises RuntimeError if a file stays there, as it does while a pipeline maps it.
    """
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
            # Looking for a page begins to read it, and a fast disk may end in time.
            if not any(_is_dropped(descriptor) for _ in range(10)):
                raise RuntimeError(f"{path} cannot be dropped from memory. Does a process map it?")
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def _is_dropped(descriptor: int) -> bool:
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    middle = os.fstat(descriptor).st_size // 2
    try:
        os.preadv(descriptor, [bytearray(1)], middle, os.RWF_NOWAIT)
    except BlockingIOError:
        return True
    return False
