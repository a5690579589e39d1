"""GZIP shards, read by tfrfast and by TensorFlow in turns within one run.

    pytest benchmarks/test_compressed.py -s

Shards are compressed as TensorFlow writes them: one member, level 6. The cache of inflated spans is
too small for the set, so every epoch inflates all spans again. Each figure is the median over turns
of TensorFlow's seconds divided by ours, with the smallest and the largest ratio. Then come the
processor seconds for a million records.
`TFRFAST_INFLATE=zlib` leaves out ISA-L where the machine has it.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import tfrfast as tfr
from benchmarks.datasets import gzip_shards_of, shards_of

# Less than half of any set below. tfrfast reads the variable at the first compressed shard.
os.environ["TFRFAST_INFLATED_BYTES"] = str(32 << 20)

tf = pytest.importorskip("tensorflow")

SHARDS = {"ctr": 3, "mnist": 4, "image": 2}
ROWS = {"ctr": 4096, "mnist": 256, "image": 64}
TURNS = int(os.environ.get("TFRFAST_BENCH_ROUNDS", "3"))


class Spent(NamedTuple):
    seconds: float
    processor_s: float


def spend(work: Callable[[], Any]) -> Spent:
    began, used = time.perf_counter(), time.process_time()
    work()
    return Spent(time.perf_counter() - began, time.process_time() - used)


def consume(batches: Any) -> None:
    for _ in batches:
        pass


@pytest.mark.parametrize("name", SHARDS)
def test_gzip_beside_tensorflow(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TFRFAST_CACHE_DIR", str(tmp_path))
    files, rows = gzip_shards_of(name)[: SHARDS[name]], ROWS[name]
    reader = tfr.Reader(files)
    block = max(1, (4 << 20) // (sum(map(os.path.getsize, shards_of(name)[:1])) // 1000))
    few = min(len(reader), 3000)
    ratios: dict[str, list[float]] = {}
    processor_s: dict[str, list[float]] = {}

    ways: dict[str, Callable[[], Any]] = {
        "Loader, in order": lambda: consume(tfr.Loader(files, rows, shuffle=False, threads=2)),
        "Loader, shuffled by blocks": lambda: consume(
            tfr.Loader(files, rows, order=tfr.BlockShuffle(block, 8), threads=2)
        ),
        "tf.data, in order": lambda: consume(tfr.TFRecordDataset(files, "GZIP").batch(rows)),
        "index build": lambda: tfr.Reader(files, index="memory", threads=1).close(),
    }

    def add(way: str, spent: Spent, theirs: Spent, records: int) -> None:
        share = records / len(reader)
        ratios.setdefault(way, []).append(theirs.seconds * share / spent.seconds)
        processor_s.setdefault(way, []).append(spent.processor_s * 1e6 / records)

    for _ in range(TURNS):
        theirs = spend(lambda: consume(tf.data.TFRecordDataset(files, "GZIP").batch(rows)))
        add("TensorFlow, in order", theirs, theirs, len(reader))
        for way, work in ways.items():
            add(way, spend(work), theirs, len(reader))
        # A whole epoch would take minutes, so both read the same number of records.
        sample = range(0, len(reader), len(reader) // few)
        order = tfr.Shuffle(indices=sample)
        ours = spend(partial(consume, tfr.Loader(files, rows, order=order, threads=2)))
        add("Loader, fully shuffled", ours, theirs, len(sample))
    for way, each in ratios.items():
        print(
            f"{name}: {way}: {statistics.median(each):.3g} x ({min(each):.3g} to {max(each):.3g}), "
            f"{statistics.median(processor_s[way]):.3g} s of processor per million"
        )
    assert statistics.median(ratios["Loader, in order"]) > 1
