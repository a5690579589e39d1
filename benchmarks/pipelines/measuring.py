"""Measures one chain, plain and accelerated by turns."""

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

_MAX_EPOCHS = 1_000


def measured(chain: Chain, folder: Path, turns: int, seconds: float) -> Result:
    """Returns the rates of the chain, or no rates if accelerate() returns the dataset unchanged.

    Uses the files that another chain has left in the folder, if any. Their indexes are settled.
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
        _rate(make, seconds / 4, chain.fills_first)  # fills caches and the runtime's pools
    for turn in range(turns):
        for make in (plain, accelerated) if turn % 2 else (accelerated, plain):
            rates[make].append(_rate(make, seconds, chain.fills_first))
    return Result(chain.programs, chain.work, rates[plain], rates[accelerated])


def _rate(make: Callable[[], Any], seconds: float, fills_first: bool) -> float:
    """Returns rows for each second of processor time, which includes making the dataset, unless it
    `fills_first`.
    """
    gc.collect()
    time.sleep(0.1)  # lets the threads of the last run end
    rows, begin = 0, time.process_time()
    dataset = make()
    for _ in range(_MAX_EPOCHS):
        for batch in dataset:
            if fills_first:
                fills_first, begin = False, time.process_time()
                continue
            first = tf.nest.flatten(batch, expand_composites=True)[0]
            rows += int(first.shape[0]) if first.shape.rank else 1
            if time.process_time() - begin >= seconds:
                return rows / (time.process_time() - begin)
    raise RuntimeError("the chain has too few rows for a run")
