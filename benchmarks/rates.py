"""Records a second, in turns: each turn is an epoch, or the first seconds of one."""

from __future__ import annotations

import gc
import os
import statistics
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from tfrfast._bench.pipelines import Epoch

_IDLE_PROBE_S = 0.05


class Rates(NamedTuple):
    """Records a second of each round."""

    records_per_s: list[float]

    @property
    def median(self) -> float:
        return statistics.median(self.records_per_s)


def rate_of(start: Epoch, batch_size: int, limit_s: float) -> float:
    """Stops after `limit_s`. The time to the first batch then does not count: it belongs to all of
    the epoch, however much of it was waited for."""
    began = time.perf_counter()
    first = now = began
    batches = 0
    for _ in start():
        now = time.perf_counter()
        batches += 1
        if batches == 1:
            first = now
        elif now - first > limit_s:
            return (batches - 1) * batch_size / (now - first)
    return batches * batch_size / (time.perf_counter() - began)


def rates_in_turns(
    builders: Mapping[str, Callable[[], Epoch]],
    batch_size: int,
    rounds: int,
    limit_s: float,
    cold: list[str] | None = None,
) -> dict[str, Rates]:
    """Warm: built once, a turn that does not count, then the rounds. `cold` names files to drop from
    memory before every turn; then all is built anew for it, as mapped pages cannot be dropped."""
    rates: dict[str, Rates] = {name: Rates([]) for name in builders}
    built = {} if cold else {name: build() for name, build in builders.items()}
    for round_number in range(0 if cold else -1, rounds):
        for name, build in builders.items():
            if cold:
                drop_from_memory(cold)
            rate = rate_of(built.get(name) or build(), batch_size, limit_s)
            wait_until_idle()
            if round_number >= 0:
                rates[name].records_per_s.append(rate)
    return rates


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
