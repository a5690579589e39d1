"""Times parsing alone, on one thread without I/O: `tfr.parse_example` beside `tf.io.parse_example`.

    pytest benchmarks/test_parse_example.py

Both get a batch of 4096 records in memory: TensorFlow a string tensor, tfrfast a RecordBatch or a
list of bytes. Quote the ratio of the medians.
"""

from __future__ import annotations

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from typing import Any

import numpy as np
import pytest

import tfrfast as tfr

tf = pytest.importorskip("tensorflow")

BATCH = 4096


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> None:
    try:
        tf.config.threading.set_intra_op_parallelism_threads(1)
        tf.config.threading.set_inter_op_parallelism_threads(1)
    except RuntimeError:
        pytest.skip("TensorFlow already has its threads: run this file alone")


def feature(values: Any) -> Any:
    if isinstance(values, bytes):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[values]))
    if np.asarray(values).dtype == np.float32:
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=np.atleast_1d(values)))


def serialize(row: dict[str, Any]) -> bytes:
    features = tf.train.Features(feature={name: feature(values) for name, values in row.items()})
    return tf.train.Example(features=features).SerializeToString()


def ctr(rng: np.random.Generator) -> tuple[list[bytes], dict[str, Any]]:
    """258 bytes: a label, 13 floats, 26 integers of up to 40 bits."""
    rows = [
        {"label": i % 2, "dense": rng.random(13, np.float32), "cat": rng.integers(0, 1 << 40, 26)}
        for i in range(BATCH)
    ]
    return [serialize(row) for row in rows], {
        "label": tf.io.FixedLenFeature([], tf.int64),
        "dense": tf.io.FixedLenFeature([13], tf.float32),
        "cat": tf.io.FixedLenFeature([26], tf.int64),
    }


def scalars(rng: np.random.Generator) -> tuple[list[bytes], dict[str, Any]]:
    """The same 40 values as 40 features."""
    rows = []
    for _ in range(BATCH):
        row: dict[str, Any] = {f"I{i}": rng.random(1, np.float32) for i in range(13)}
        row.update({f"C{i}": int(rng.integers(0, 1 << 40)) for i in range(26)})
        rows.append({"label": 1, **row})
    features = {"label": tf.io.FixedLenFeature([], tf.int64)}
    features.update({f"I{i}": tf.io.FixedLenFeature([], tf.float32) for i in range(13)})
    features.update({f"C{i}": tf.io.FixedLenFeature([], tf.int64) for i in range(26)})
    return [serialize(row) for row in rows], features


def mostly_missing(rng: np.random.Generator) -> tuple[list[bytes], dict[str, Any]]:
    """200 sparse features, of which a record has about ten."""
    names = [f"feature_{i}" for i in range(200)]
    rows = [
        {
            name: rng.integers(0, 1 << 20, rng.integers(1, 4))
            for name in rng.choice(names, 10, False)
        }
        for _ in range(BATCH)
    ]
    return [serialize(row) for row in rows], {name: tf.io.VarLenFeature(tf.int64) for name in names}


def lists(rng: np.random.Generator) -> tuple[list[bytes], dict[str, Any]]:
    """A ragged list of 0 to 200 integers of up to 40 bits."""
    rows = [{"ids": rng.integers(0, 1 << 40, rng.integers(0, 201))} for _ in range(BATCH)]
    return [serialize(row) for row in rows], {
        "ids": tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64)
    }


def short_lists(rng: np.random.Generator) -> tuple[list[bytes], dict[str, Any]]:
    """A ragged list of 0 to 200 integers of one or two bytes."""
    rows = [{"ids": rng.integers(0, 1000, rng.integers(0, 201))} for _ in range(BATCH)]
    return [serialize(row) for row in rows], {
        "ids": tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64)
    }


def images(rng: np.random.Generator) -> tuple[list[bytes], dict[str, Any]]:
    """10 KB of bytes and a label."""
    rows = [{"image": rng.bytes(10_000), "label": i} for i in range(BATCH)]
    return [serialize(row) for row in rows], {
        "image": tf.io.FixedLenFeature([], tf.string),
        "label": tf.io.FixedLenFeature([], tf.int64),
    }


SETS = {make.__name__: make for make in (ctr, scalars, mostly_missing, lists, short_lists, images)}


@pytest.fixture(scope="module", params=SETS)
def batch(request: pytest.FixtureRequest) -> tuple[str, list[bytes], dict[str, Any]]:
    records, features = SETS[request.param](np.random.default_rng(0))
    return request.param, records, features


@pytest.mark.parametrize("parser", ["tensorflow", "tfrfast", "tfrfast_list"])
def test_parse_example(
    benchmark: Any, batch: tuple[str, list[bytes], dict[str, Any]], parser: str
) -> None:
    name, records, features = batch
    benchmark.group = name
    benchmark.extra_info["records"] = len(records)
    if parser == "tensorflow":
        tensor = tf.constant(records)
        benchmark(lambda: tf.io.parse_example(tensor, features))
    elif parser == "tfrfast_list":
        benchmark(lambda: tfr.parse_example(records, features))
    else:
        ends = np.cumsum([0, *map(len, records)], dtype=np.int64)
        rows = len(records)
        together = tfr.RecordBatch(
            np.frombuffer(b"".join(records), np.uint8), ends, np.arange(rows), np.ones(rows, bool)
        )
        benchmark(lambda: tfr.parse_example(together, features))
