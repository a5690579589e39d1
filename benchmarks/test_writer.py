"""Times writing and encoding, each beside TensorFlow's way.

pytest benchmarks/test_writer.py        TFRFAST_BENCH_FOLDER chooses the disk (default: pytest's)
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr

ROUNDS = 7
RNG = np.random.default_rng(0)
SIZES = {"300 B": (300, 400_000), "110 KB": (110_000, 3000)}
ROWS = 20_000
COLUMNS = {
    "label": np.arange(ROWS) % 2,
    "dense": RNG.random((ROWS, 13), np.float32),
    "cat": RNG.integers(0, 1 << 40, (ROWS, 26)),
}

Way = Callable[[Path], None]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    chosen = os.environ.get("TFRFAST_BENCH_FOLDER")
    made = Path(chosen) / f"bench-{os.getpid()}" if chosen else tmp_path / "data"
    made.mkdir(exist_ok=True)
    return made


@pytest.fixture(params=list(SIZES))
def records(request: pytest.FixtureRequest) -> list[bytes]:
    length, count = SIZES[request.param]
    some = [RNG.bytes(length) for _ in range(100)]
    return list(itertools.islice(itertools.cycle(some), count))


def write_each(records: list[bytes]) -> Way:
    def run(path: Path) -> None:
        with tfr.Writer(path, sync=False) as writer:
            for record in records:
                writer.write(record)

    return run


def write_batches(records: list[bytes], folder: Path) -> Way:
    with tfr.Writer(folder / "batches", sync=False) as writer:
        writer.write_batch(records)
    with tfr.Reader(folder / "batches") as reader:
        step = max(1, (16 << 20) // len(records[0]))
        batches = [reader[at : at + step] for at in range(0, len(reader), step)]

    def run(path: Path) -> None:
        with tfr.Writer(path, sync=False) as writer:
            for batch in batches:
                writer.write_batch(batch)

    return run


def write_with_tensorflow(records: list[bytes]) -> Way:
    tf = pytest.importorskip("tensorflow")

    def run(path: Path) -> None:
        with tf.io.TFRecordWriter(str(path)) as writer:
            for record in records:
                writer.write(record)

    return run


def test_writing(records: list[bytes], folder: Path) -> None:
    """Times all ways in turns, so that each meets the same noise. Prints medians and their ratio to
    TensorFlow's: of elapsed time, of processor time, and of the time until the disk has everything.
    """
    ways = {
        "tf.io.TFRecordWriter": write_with_tensorflow(records),
        "tfr.Writer.write": write_each(records),
        "tfr.Writer.write_batch": write_batches(records, folder),
    }
    times: dict[str, list[tuple[float, float, float]]] = {name: [] for name in ways}
    for turn in range(ROUNDS + 1):
        for name, way in ways.items():
            path = folder / f"{turn}-{name}"
            os.sync()  # so that no way waits for earlier writes
            began, began_processor = time.perf_counter(), time.process_time()
            way(path)
            wrote, wrote_processor = time.perf_counter(), time.process_time()
            with path.open("rb") as file:
                os.fsync(file.fileno())
            if turn > 0:  # the first turn warms up
                durable = time.perf_counter() - wrote
                times[name].append((wrote - began, wrote_processor - began_processor, durable))
            path.unlink()
    length = len(records[0])
    base = [median(column) for column in zip(*times["tf.io.TFRecordWriter"], strict=True)]
    print(f"\n{len(records)} records of {length} bytes")
    for name, measured in times.items():
        wrote_s, processor_s, durable_s = (median(column) for column in zip(*measured, strict=True))
        print(
            f"{name:24} {len(records) / wrote_s / 1e3:8.0f} thousand/s "
            f"{length * len(records) / wrote_s / 1e9:5.2f} GB/s  x{base[0] / wrote_s:5.1f} elapsed  "
            f"x{base[1] / processor_s:5.1f} processor  then durable in {durable_s * 1e3:4.0f} ms"
        )


@pytest.mark.benchmark(group="encoding rows of 41 values")
@pytest.mark.parametrize("threads", [1, 2])
def test_encode_columns(benchmark: Any, threads: int) -> None:
    batch = benchmark(lambda: tfr.encode_examples(COLUMNS, threads=threads))
    benchmark.extra_info["ns_a_row"] = benchmark.stats["median"] / len(batch) * 1e9


@pytest.mark.benchmark(group="encoding rows of 41 values")
def test_encode_one_by_one(benchmark: Any) -> None:
    rows = [{name: column[i] for name, column in COLUMNS.items()} for i in range(500)]
    benchmark(lambda: [tfr.encode_example(row) for row in rows])
    benchmark.extra_info["ns_a_row"] = benchmark.stats["median"] / len(rows) * 1e9


@pytest.mark.benchmark(group="encoding rows of 41 values")
def test_tensorflow_encodes(benchmark: Any) -> None:
    tf = pytest.importorskip("tensorflow")
    train = tf.train

    def encode(i: int) -> bytes:
        feature = {
            "label": train.Feature(int64_list=train.Int64List(value=[COLUMNS["label"][i]])),
            "dense": train.Feature(float_list=train.FloatList(value=COLUMNS["dense"][i])),
            "cat": train.Feature(int64_list=train.Int64List(value=COLUMNS["cat"][i])),
        }
        example = train.Example(features=train.Features(feature=feature))
        serialized: bytes = example.SerializeToString()
        return serialized

    benchmark(lambda: [encode(i) for i in range(500)])
    benchmark.extra_info["ns_a_row"] = benchmark.stats["median"] / 500 * 1e9


@pytest.mark.benchmark(group="shuffling 300 MB")
@pytest.mark.parametrize("max_memory", ["2GiB", "256MiB"])
def test_shuffle(benchmark: Any, folder: Path, max_memory: str) -> None:
    """Times a shuffle in memory and a shuffle through intermediate files."""
    with tfr.Writer(folder / "source", sync=False) as writer:
        writer.write_batch([RNG.bytes(300)] * 1_000_000)

    def run() -> None:
        tfr.shuffle(
            folder / "source",
            folder / "out" / "x",
            num_shards=4,
            max_memory=max_memory,
            overwrite=True,
            sync=False,
        )

    benchmark.pedantic(run, rounds=3, warmup_rounds=1)
    benchmark.extra_info["bytes_per_s"] = 300e6 / benchmark.stats["median"]
