"""Runs of one chain, plain and accelerated in turns."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tensorflow as tf

import tfrfast as tfr
from benchmarks.pipelines.chain import Chain
from benchmarks.pipelines.records import write_data
from benchmarks.pipelines.results import Result

_ENOUGH_ROUNDS = 1_000


def measured(chain: Chain, folder: Path, turns: int, seconds: float) -> Result:
    """Also where accelerate() returns the dataset itself: then no time is taken.

    Files that another chain has left in the folder are read again, so that their indexes are
    settled, too.
    """
    own = folder / chain.data
    files = sorted(map(str, own.glob("train-*-of-?????"))) or write_data(chain.data, own)

    def plain() -> Any:
        return chain.build(files, chain.batch, None)

    def accelerated() -> Any:
        return tfr.accelerate(plain())

    dataset = plain()
    ours = tfr.accelerate(dataset)
    next(iter(ours))  # builds the indexes
    if ours is dataset or getattr(ours, "_built", None) is dataset:
        return Result(chain.programs, chain.work, [], [])
    del dataset, ours
    rates: dict[Callable[[], Any], list[float]] = {plain: [], accelerated: []}
    for make in rates:
        _rate(make, seconds / 4)  # caches and the runtime's pools fill
    for turn in range(turns):
        for make in (plain, accelerated) if turn % 2 else (accelerated, plain):
            rates[make].append(_rate(make, seconds))
    return Result(chain.programs, chain.work, rates[plain], rates[accelerated])


def _rate(make: Callable[[], Any], seconds: float) -> float:
    """Rows for each second of processor time, from making the dataset on."""
    gc.collect()
    time.sleep(0.1)  # threads of the run before end
    rows, begin = 0, time.process_time()
    dataset = make()
    for _ in range(_ENOUGH_ROUNDS):
        for batch in dataset:
            first = tf.nest.flatten(batch, expand_composites=True)[0]
            rows += int(first.shape[0]) if first.shape.rank else 1
            if time.process_time() - begin >= seconds:
                return rows / (time.process_time() - begin)
    raise RuntimeError("the data are too few for a run")
