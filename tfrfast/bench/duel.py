"""Times several ways to do the same work in turns, so that a slow machine slows all ways."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple


class Timing(NamedTuple):
    """The seconds of each round: by the clock, and the processor time of all threads."""

    seconds: list[float]
    processor_s: list[float]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


def take_turns(
    contenders: Mapping[str, Callable[[], object]],
    rounds: int = 5,
    warmups: int = 1,
    before_each: Callable[[], object] = lambda: None,
) -> dict[str, Timing]:
    """Times every contender once in each round, after `warmups` rounds that do not count."""
    timings: dict[str, Timing] = {name: Timing([], []) for name in contenders}
    for round_number in range(-warmups, rounds):
        for name, work in contenders.items():
            before_each()
            began, used = time.perf_counter(), time.process_time()
            work()
            took, used = time.perf_counter() - began, time.process_time() - used
            if round_number >= 0:
                timings[name].seconds.append(took)
                timings[name].processor_s.append(used)
    return timings
