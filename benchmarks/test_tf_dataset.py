"""Times tf.data sources in turns with TensorFlow's own, over the same files in one run.

    pytest benchmarks/test_tf_dataset.py -s -k "ctr and strings"

All files are in memory. A turn is a whole epoch. A source that needs more than
TFRFAST_BENCH_TURN_S seconds for an epoch reads fewer shards. Medians of TFRFAST_BENCH_ROUNDS turns
are compared.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from benchmarks.datasets import DATA_SETS, shards_of
from benchmarks.rates import Builder, rates_in_turns
from tfrfast.bench.pipelines import WINDOW, Epoch, tensorflow_features
from tfrfast.bench.shapes import SHAPES, warm

tf = pytest.importorskip("tensorflow")

TURN_S = float(os.environ.get("TFRFAST_BENCH_TURN_S", "2"))
ROUNDS = int(os.environ.get("TFRFAST_BENCH_ROUNDS", "5"))
SHARDS = 1024

Dataset = Any
Ways = dict[str, Callable[[], Dataset]]


def window(files: list[str], rows: int) -> Dataset:
    """TensorFlow's shuffle, as its guides tune it."""
    names = tf.data.Dataset.from_tensor_slices(files).shuffle(len(files))
    read = names.interleave(
        tf.data.TFRecordDataset,
        cycle_length=4,
        num_parallel_calls=tf.data.AUTOTUNE,
        deterministic=False,
    )
    return read.shuffle(WINDOW).batch(rows)


def ways(name: str, pipeline: str, files: list[str]) -> Ways:
    """Returns TensorFlow's source, tfrfast's source and, in some cases, a Loader."""
    rows = SHAPES[name].batch_size
    features, auto = SHAPES[name].features, tf.data.AUTOTUNE
    specs = tensorflow_features(features)

    def parsed(dataset: Dataset) -> Dataset:
        return dataset.map(lambda r: tf.io.parse_example(r, specs), num_parallel_calls=auto)

    def theirs() -> Dataset:
        return tf.data.TFRecordDataset(files)

    def ours() -> Dataset:
        return tfr.TFRecordDataset(files)

    def loader() -> tfr.Loader:
        return tfr.Loader(files, rows, features=features)

    return {
        "strings": {
            "TensorFlow": lambda: theirs().batch(rows),
            "tfrfast": lambda: ours().batch(rows),
        },
        "elements": {
            "TensorFlow": lambda: theirs().map(tf.identity).batch(rows),
            "tfrfast": lambda: ours().map(tf.identity).batch(rows),
        },
        "strings, shuffled": {
            "TensorFlow, in file order": lambda: theirs().batch(rows),
            "TensorFlow, window": lambda: window(files, rows).prefetch(auto),
            "tfrfast": lambda: ours().shuffle(WINDOW).batch(rows),
        },
        "decoded": {
            "TensorFlow": lambda: parsed(theirs().batch(rows)).prefetch(auto),
            "tfrfast": lambda: ours().batch(rows).parse_example(features),
        },
        "decoded, shuffled": {
            "Loader": loader,
            "TensorFlow, window": lambda: parsed(window(files, rows)).prefetch(auto),
            "tfrfast": lambda: ours().shuffle(WINDOW).batch(rows).parse_example(features),
            "tfrfast, to_tf_dataset": lambda: loader().to_tf_dataset(),
        },
    }[pipeline]


PIPELINES = ("strings", "elements", "strings, shuffled", "decoded", "decoded, shuffled")


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("name", list(DATA_SETS))
def test_pipeline(name: str, pipeline: str) -> None:
    files, rows = shards_of(name), SHAPES[name].batch_size
    warm(files)
    tfr.Reader(files).close()  # from here on, its index is kept

    def builder_of(way: str) -> Builder:
        def build(files: list[str]) -> Epoch:
            dataset = ways(name, pipeline, files)[way]()
            return lambda: dataset

        return build

    builders = {way: builder_of(way) for way in ways(name, pipeline, files)}
    rates = rates_in_turns(builders, files, rows, ROUNDS, TURN_S)
    baseline, *_ = rates.values()
    print(f"\n{name}: {pipeline}, TensorFlow {tf.__version__}")
    for way, rate in rates.items():
        low, high = min(rate.records_per_s), max(rate.records_per_s)
        ratio = rate.median / baseline.median
        processor_s = statistics.median(rate.processor_s_per_million)
        print(
            f"  {way:28} {rate.median:14,.0f} records/s ({low:,.0f} to {high:,.0f})  {ratio:.2f} x"
            f"  {processor_s:.3g} s of processor per million"
        )


@pytest.mark.parametrize("order", ["in order", "shuffled"])
def test_first_batch_of_many_shards(tmp_path: Path, order: str) -> None:
    """Times the opening of 1,024 shards whose indexes exist."""
    files = []
    for number in range(SHARDS):
        path = str(tmp_path / f"part-{number:05}-of-{SHARDS:05}")
        with tfr.Writer(path, sync=False, overwrite=True) as writer:
            for record in range(20):
                writer.write(b"%d of %d" % (record, number))
        files.append(path)
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        dataset = tfr.TFRecordDataset(files)
        if order == "shuffled":
            dataset = dataset.shuffle(1)
        next(iter(dataset.batch(64)))
        times.append(time.perf_counter() - began)
    print(f"\n{SHARDS} shards, {order}: first batch after {sorted(times)[ROUNDS // 2]:.3f} s")
