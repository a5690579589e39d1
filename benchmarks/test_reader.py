"""Random access through the public API, beside ArrayRecord where it is installed.

pytest benchmarks/test_reader.py
"""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from benchmarks.datasets import DATA_SETS, shards_of
from tfrfast.bench.shapes import SHAPES, warm


@pytest.fixture(params=list(DATA_SETS))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def reader(name: str) -> Iterator[tfr.Reader]:
    shards = shards_of(name)
    warm(shards)
    with tfr.Reader(shards) as opened:
        opened.read(np.arange(len(opened))[:: max(1, len(opened) // 4096)])
        yield opened


def batches(count: int, size: int, shuffled: bool) -> list[np.ndarray]:
    order = np.random.default_rng(0).permutation(count) if shuffled else np.arange(count)
    return [order[at : at + size] for at in range(0, count - size + 1, size)]


@pytest.mark.benchmark(group="reader.read, one batch")
@pytest.mark.parametrize("order", ["in order", "shuffled"])
def test_read_batches(benchmark: Any, name: str, reader: tfr.Reader, order: str) -> None:
    size = SHAPES[name].batch_size
    wanted = batches(len(reader), size, order == "shuffled")
    for numbers in wanted:
        reader.read(numbers)  # touches every page once
    turns = itertools.cycle(wanted)
    batch = benchmark(lambda: reader.read(next(turns)))
    benchmark.extra_info["records_per_s"] = size / benchmark.stats["median"]
    benchmark.extra_info["bytes_per_s"] = batch.data.nbytes / benchmark.stats["median"]


@pytest.mark.benchmark(group="reader[i]")
def test_read_one(benchmark: Any, name: str, reader: tfr.Reader) -> None:
    numbers = itertools.cycle(np.random.default_rng(0).integers(0, len(reader), 50_000).tolist())
    assert benchmark(lambda: reader[next(numbers)])


@pytest.mark.benchmark(group="reader[i]")
def test_array_record_reads_one(benchmark: Any, name: str, tmp_path: Any) -> None:
    module = pytest.importorskip("array_record.python.array_record_module")
    path = str(tmp_path / "records.array_record")
    records = list(itertools.islice(tfr.Reader(shards_of(name)), 20_000))
    writer = module.ArrayRecordWriter(path, "group_size:1")
    for record in records:
        writer.write(record)
    writer.close()
    reader = module.ArrayRecordReader(path, "readahead_buffer_size:0")
    numbers = itertools.cycle(np.random.default_rng(0).integers(0, len(records), 5000).tolist())
    assert benchmark(lambda: reader.read([next(numbers)]))


@pytest.mark.benchmark(group="building an index")
@pytest.mark.parametrize("threads", [1, 2])
def test_build_index(benchmark: Any, name: str, threads: int) -> None:
    shards = shards_of(name)
    warm(shards)

    def build() -> int:
        with tfr.Reader(shards, index="memory", threads=threads) as reader:
            return len(reader)

    records = benchmark(build)
    benchmark.extra_info["records_per_s"] = records / benchmark.stats["median"]


def test_opening_an_indexed_set_of_ten_million_records(tmp_path: Any) -> None:
    """Fails above a bound: 50 ms and 10 MB of anonymous memory."""
    shards = shards_of("ctr") * 5
    tfr.build_index(shards, index_folder=tmp_path)
    script = """
import sys, time, tfrfast as tfr
def anonymous_mb():
    return int(open("/proc/self/status").read().split("RssAnon:")[1].split()[0]) / 1024
tfr.Reader(sys.argv[3:4], index_folder=sys.argv[1]).close()
before = anonymous_mb()
began = time.perf_counter()
reader = tfr.Reader(sys.argv[2:], index_folder=sys.argv[1])
took_ms = (time.perf_counter() - began) * 1e3
print(len(reader), took_ms, anonymous_mb() - before)
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path), *shards],
        capture_output=True,
        text=True,
        check=True,
    )
    records, took_ms, memory_mb = map(float, done.stdout.split())
    print(f"\n{records:.0f} records: {took_ms:.1f} ms, {memory_mb:.1f} MB")
    assert records == 10_000_000
    assert took_ms < 50
    assert memory_mb < 10
