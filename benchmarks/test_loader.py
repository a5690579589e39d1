"""Measures epochs of the Loader: cold epochs beside plain reads of the same disk, and memory.

pytest benchmarks/test_loader.py -s
"""

from __future__ import annotations

import os
import statistics
from concurrent.futures import ThreadPoolExecutor

import pytest

import tfrfast as tfr
from benchmarks.datasets import DATA_SETS, shards_of
from benchmarks.rates import drop_from_memory
from tfrfast.bench.compare import take_turns
from tfrfast.bench.shapes import SHAPES


@pytest.fixture(params=list(DATA_SETS))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def parallel_pread(shards: list[str], threads: int = 8, piece: int = 4 << 20) -> None:
    """Reads all bytes in order, as fast as plain reads can."""

    def read(path: str) -> None:
        buffer = bytearray(piece)
        with open(path, "rb", buffering=0) as shard:
            while shard.readinto(buffer):
                pass

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(read, shards))


@pytest.mark.parametrize("order", ["in order", "shuffled"])
def test_cold_epoch(name: str, order: str) -> None:
    """Compares with plain parallel reads of the same bytes from the same disk in the same run."""
    shards = shards_of(name)

    def load() -> None:
        # A fresh reader each time: pages that are mapped cannot be dropped.
        with tfr.Reader(shards) as reader:
            loader = tfr.Loader(reader, SHAPES[name].batch_size, shuffle=order == "shuffled")
            for _ in loader:
                pass
            loader.close()

    tfr.Reader(shards).close()  # from here on, the cache folder has its index
    timings = take_turns(
        {"tfrfast": load, "plain parallel reads": lambda: parallel_pread(shards)},
        warmups=0,
        before_each=lambda: drop_from_memory(shards),
    )
    total = sum(os.path.getsize(path) for path in shards)
    rates = ", ".join(
        f"{who} {total / timing.median / 1e9:.2f} GB/s ({min(timing.seconds):.3g}..{max(timing.seconds):.3g} s)"
        for who, timing in timings.items()
    )
    ours, theirs = (timings[who].seconds for who in ("tfrfast", "plain parallel reads"))
    share = statistics.median(b / a for a, b in zip(ours, theirs, strict=True))
    print(f"\n{name}, cold, {order}: {rates}: {share:.2f} of it")


def test_memory_of_a_shuffled_epoch() -> None:
    """Fails above a bound: 64 MB of anonymous memory for 2 million records."""
    shards = shards_of("ctr")

    def anonymous_mb() -> float:
        with open("/proc/self/status") as status:
            return int(status.read().split("RssAnon:")[1].split()[0]) / 1024

    with tfr.Reader(shards) as reader:
        before = anonymous_mb()
        loader = tfr.Loader(reader, 4096)
        max_mb = before
        for batch in loader:
            del batch
            max_mb = max(max_mb, anonymous_mb())
        print(f"\n{max_mb - before:.1f} MB more over a shuffled epoch of {len(reader)} records")
        assert max_mb - before < 64
