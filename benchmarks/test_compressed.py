"""GZIP shards, ours beside TensorFlow's, paired in turns within one run.

    pytest benchmarks/test_compressed.py -s

Shards are compressed as TensorFlow writes them: one member, level 6. Each figure is the median over
turns of TensorFlow's seconds divided by ours, with the least and the greatest ratio. `TFRFAST_INFLATE=zlib`
leaves out ISA-L where the machine has it.
"""

from __future__ import annotations

import os
import statistics
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from benchmarks.datasets import folder, shards_of

tf = pytest.importorskip("tensorflow")

SHARDS = {"ctr": 3, "mnist": 4, "image": 2}
ROWS = {"ctr": 4096, "mnist": 256, "image": 64}
TURNS = int(os.environ.get("TFRFAST_BENCH_ROUNDS", "3"))


def compressed(name: str) -> list[str]:
    made = []
    for plain in shards_of(name)[: SHARDS[name]]:
        target = folder() / "gzip" / name / os.path.basename(plain)
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            packer = zlib.compressobj(6, zlib.DEFLATED, 31, 9)
            whole = packer.compress(Path(plain).read_bytes()) + packer.flush()
            part = target.with_name(".part")
            part.write_bytes(whole)
            part.rename(target)
        made.append(str(target))
    return made


def seconds(work: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def consume(batches: Any) -> None:
    for _ in batches:
        pass


@pytest.mark.parametrize("name", SHARDS)
def test_gzip_beside_tensorflow(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TFRFAST_CACHE_DIR", str(tmp_path))
    files, rows = compressed(name), ROWS[name]
    reader = tfr.Reader(files)
    block = max(1, (4 << 20) // (sum(map(os.path.getsize, shards_of(name)[:1])) // 1000))
    few = min(len(reader), 3000)
    rates: dict[str, list[float]] = {}

    ways: dict[str, Callable[[], Any]] = {
        "Loader, in order": lambda: consume(tfr.Loader(files, rows, shuffle=False, threads=2)),
        "Loader, shuffled by blocks": lambda: consume(
            tfr.Loader(files, rows, shuffle=tfr.BlockShuffle(block, 8), threads=2)
        ),
        "tf.data, in order": lambda: consume(tfr.TFRecordDataset(files, "GZIP").batch(rows)),
        "index build": lambda: tfr.Reader(files, index="memory", threads=1).close(),
    }
    for _ in range(TURNS):
        theirs = seconds(lambda: consume(tf.data.TFRecordDataset(files, "GZIP").batch(rows)))
        for way, work in ways.items():
            rates.setdefault(way, []).append(theirs / seconds(work))
        # A whole epoch would take minutes: some records, against as many of TensorFlow's.
        sample = range(0, len(reader), len(reader) // few)
        ours = seconds(lambda: consume(tfr.Loader(files, rows, threads=2, indices=sample)))  # noqa: B023
        share = len(sample) / len(reader)
        rates.setdefault("Loader, fully shuffled", []).append(theirs * share / ours)
    for way, ratios in rates.items():
        low, high = min(ratios), max(ratios)
        print(f"{name}: {way}: {statistics.median(ratios):.3g} x ({low:.3g} to {high:.3g})")
    assert statistics.median(rates["Loader, in order"]) > 1
