"""Records a second and processor time, in turns: each turn is a whole epoch, from iter() on."""

from __future__ import annotations

import gc
import os
import statistics
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

import tfrfast as tfr
from tfrfast._bench.pipelines import Epoch

_IDLE_PROBE_S = 0.05

Builder = Callable[[list[str]], Epoch]
"""Builds a pipeline over these files, once; what it returns starts an epoch."""


class Turn(NamedTuple):
    records_per_s: float
    processor_s_per_million: float
    """Of all threads of this process, for a million records."""


class Rates(NamedTuple):
    """Of each round; `shards` says over how many of the first files."""

    records_per_s: list[float]
    processor_s_per_million: list[float]
    shards: int

    @property
    def median(self) -> float:
        return statistics.median(self.records_per_s)


def time_epoch(start: Epoch, batch_size: int, num_records: int) -> Turn:
    """`num_records`: how many there are, as the last batch may hold fewer than others."""
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
    """Warm: built once, a turn that does not count, then the rounds. A contender that needs longer
    than `limit_s` for all files reads as many of the first ones as it can, or the first alone.

    Cold: files are dropped from memory before every turn, and all is built again for it, as mapped
    pages cannot be dropped. Everyone reads all of them.
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
            start = built.get(name) or build(files)
            turn = time_epoch(start, batch_size, sizes[len(chosen[name])])
            wait_until_idle()
            if round_number >= 0:
                rates[name].records_per_s.append(turn.records_per_s)
                rates[name].processor_s_per_million.append(turn.processor_s_per_million)
    return rates


def _affordable(build: Builder, files: list[str], batch_size: int, limit_s: float) -> int:
    """How many of the first files an epoch of `limit_s` can read, judged by the first one."""
    start, records = build(files[:1]), _count_records(files[:1])
    time_epoch(start, batch_size, records)  # whatever a first epoch has to prepare
    took = records / time_epoch(start, batch_size, records).records_per_s
    wait_until_idle()
    return max(1, min(len(files), int(limit_s / took)))


def _count_records(files: list[str]) -> int:
    with tfr.Reader(files) as reader:
        return len(reader)


def wait_until_idle(longest_s: float = 10) -> None:
    """Until what a turn has left behind, such as threads that read ahead for an iterator which is
    no more, has stopped taking processor time from the next."""
    gc.collect()
    end = time.perf_counter() + longest_s
    while time.perf_counter() < end:
        used = time.process_time()
        time.sleep(_IDLE_PROBE_S)
        if time.process_time() - used < _IDLE_PROBE_S / 20:
            return


def drop_from_memory(paths: list[str]) -> None:
    """Needs no privilege, as long as the files have been written back."""
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)
