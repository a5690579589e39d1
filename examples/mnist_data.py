"""Digits of 28 x 28 as TFRecord shards, for the other examples.

The digits are Keras' MNIST if its file is on this machine. Otherwise this module draws digits.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

import tfrfast as tfr
from tfrfast.bench.digits import SIDE, draw_digit

PIXELS = SIDE * SIDE
KERAS_FILE = Path("~/.keras/datasets/mnist.npz").expanduser()

Pixels = Literal["floats", "bytes"]


class Digits(NamedTuple):
    """The shards of both parts."""

    train: list[str]
    test: list[str]


def write_digits(folder: Path, pixels: Pixels, train: int = 10_000, test: int = 761) -> Digits:
    """Writes ten shards of digits to train on, and one to evaluate with.

    An example has `height`, `width`, `image` (784 floats, or as many bytes) and `label`.
    """
    return Digits(
        _write(folder / "train", pixels, *_digits("train", train), num_shards=10),
        _write(folder / "test", pixels, *_digits("test", test), num_shards=1),
    )


def features(pixels: Pixels) -> dict[str, tfr.FixedLen]:
    """The specs of an example, for reading without TensorFlow."""
    image = {
        "floats": tfr.FixedLen((PIXELS,), "float32"),
        "bytes": tfr.FixedLen((PIXELS,), "uint8", raw=True),
    }
    return {"image": image[pixels], "label": tfr.FixedLen((), "int64")}


def _digits(part: str, count: int) -> tuple[Any, Any]:
    if KERAS_FILE.exists():
        with np.load(KERAS_FILE) as arrays:
            return arrays[f"x_{part}"][:count], arrays[f"y_{part}"][:count]
    random = np.random.default_rng(len(part))
    labels = random.integers(0, 10, count)
    return np.stack([draw_digit(random, label) for label in labels]), labels


def _write(prefix: Path, pixels: Pixels, images: Any, labels: Any, num_shards: int) -> list[str]:
    rows = len(labels)
    kind = np.float32 if pixels == "floats" else np.uint8
    examples = tfr.encode_examples(
        {
            "height": np.full(rows, SIDE),
            "width": np.full(rows, SIDE),
            "image": images.reshape(rows, PIXELS).astype(kind),
            "label": labels,
        },
        raw=["image"] if pixels == "bytes" else [],
    )
    with tfr.ShardedWriter(prefix, num_shards=num_shards, sync=False, overwrite=True) as writer:
        writer.write_batch(examples)
    return sorted(str(path) for path in prefix.parent.glob(f"{prefix.name}-*"))
