"""The three shapes of data for all measurements: many numbers, small pictures, photos."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from tfrfast.bench.digits import SIDE, draw_digit
from tfrfast.example.encoding import encode_example
from tfrfast.features import Features, FixedLen
from tfrfast.writing.writer import Writer

_DISTINCT_RECORDS = 2000  # records repeat, because no reader's speed depends on their content
_WRITTEN_TOGETHER = 1000

Row = dict[str, object]


class Shape(NamedTuple):
    """The content of a record, its features, and a usual batch size."""

    row: Callable[[Generator, int], Row]
    features: Features
    batch_size: int


def _ctr_row(random: Generator, number: int) -> Row:
    return {
        "label": number % 2,
        "dense": random.random(13, np.float32),
        "cat": random.integers(0, 1 << 40, 26),
    }


def _mnist_row(random: Generator, number: int) -> Row:
    return {
        "height": SIDE,
        "width": SIDE,
        "image": draw_digit(random, number % 10).reshape(-1),
        "label": number % 10,
    }


def _image_row(random: Generator, number: int) -> Row:
    return {
        "image/encoded": random.bytes(int(np.clip(random.normal(110e3, 30e3), 1e4, 3e5))),
        "image/class/label": number % 1000,
        "image/height": 500,
        "image/width": 375,
        "image/format": b"JPEG",
        "image/filename": b"%d.jpg" % number,
    }


SHAPES = {
    # 258 bytes: a label, 13 floats, 26 integers of up to 40 bits.
    "ctr": Shape(
        _ctr_row,
        {
            "label": FixedLen((), "int64"),
            "dense": FixedLen((13,), "float32"),
            "cat": FixedLen((26,), "int64"),
        },
        4096,
    ),
    # 3.2 KB: 784 floats and three integers.
    "mnist": Shape(
        _mnist_row,
        {
            "height": FixedLen((), "int64"),
            "width": FixedLen((), "int64"),
            "image": FixedLen((SIDE * SIDE,), "float32"),
            "label": FixedLen((), "int64"),
        },
        256,
    ),
    # 110 KB: a byte string and five small features.
    "image": Shape(
        _image_row,
        {
            "image/encoded": FixedLen((), "bytes"),
            "image/class/label": FixedLen((), "int64"),
        },
        128,
    ),
}


def write_shape(name: str, folder: Path, num_records: int, num_shards: int) -> list[str]:
    """Writes shards of equal size into `folder`. Does not write records that are left over."""
    random = np.random.default_rng(0)
    distinct = min(_DISTINCT_RECORDS, num_records)
    pool = [encode_example(SHAPES[name].row(random, number)) for number in range(distinct)]
    folder.mkdir(parents=True, exist_ok=True)
    per_shard = num_records // num_shards
    paths = []
    for shard in range(num_shards):
        path = folder / f"train-{shard:05d}-of-{num_shards:05d}"
        first, end = shard * per_shard, (shard + 1) * per_shard
        with Writer(path, index=False, sync=False, overwrite=True) as writer:
            for at in range(first, end, _WRITTEN_TOGETHER):
                numbers = range(at, min(at + _WRITTEN_TOGETHER, end))
                writer.write_batch([pool[number % distinct] for number in numbers])
        paths.append(str(path))
    return paths


def warm(shards: list[str]) -> None:
    """Reads all files once, into the page cache."""
    for path in shards:
        with open(path, "rb") as shard:
            while shard.read(1 << 24):
                pass
