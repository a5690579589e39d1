"""Trains without a framework. Shows records one by one, and `indices=` for a split and for balance.

python examples/numpy_loop.py
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
from mnist_data import PIXELS, features, write_digits

import tfrfast as tfr

BATCH_SIZE = 64
CLASSES = 10
STEP = 0.1


class Split(NamedTuple):
    """The record numbers of both parts. No file is rewritten."""

    train: np.ndarray
    validation: np.ndarray


def show_records(reader: tfr.Reader, count: int = 3) -> list[str]:
    """Records read back one by one, as `tfrfast cat` would print them."""
    lines = []
    wanted = {**features("floats"), "height": tfr.FixedLen((), "int64")}
    for number in range(count):
        example = tfr.parse_example([reader[number]], wanted)
        pixels = example["image"][0]
        lines.append(
            f"record {number}: label {example['label'][0]}, height {example['height'][0]}, "
            f"{pixels.size} pixels, {np.count_nonzero(pixels > 100)} of them dark"
        )
    return lines


def split_records(reader: tfr.Reader, validation_share: float = 0.2) -> Split:
    """Two disjoint parts that together are everything: an exact shuffle, cut once."""
    plan = tfr.Plan(tfr.Shuffle(seed=1), 1, num_records=len(reader))
    order = plan.records_at(0, 0, len(reader))
    held_out = int(len(reader) * validation_share)
    return Split(order[held_out:], order[:held_out])


def balanced(labels: np.ndarray, records: np.ndarray, per_class: int) -> np.ndarray:
    """The same number of records of each class. Records of rare classes come more than once."""
    random = np.random.default_rng(2)
    return np.concatenate(
        [random.choice(records[labels[records] == each], per_class) for each in range(CLASSES)]
    )


def labels_of(reader: tfr.Reader) -> np.ndarray:
    only_label = {"label": tfr.FixedLen((), "int64")}
    loader = tfr.Loader(reader, 1024, features=only_label, shuffle=False)
    return np.concatenate([batch["label"] for batch in loader])


def train(reader: tfr.Reader, records: np.ndarray, epochs: int = 3) -> np.ndarray:
    """Trains a softmax regression by gradient descent."""
    weights = np.zeros((PIXELS + 1, CLASSES))
    loader = tfr.Loader(
        reader, BATCH_SIZE, order=tfr.Shuffle(3, indices=records), features=features("floats")
    )
    for _ in range(epochs):
        for batch in loader:
            inputs = _with_bias(batch["image"])
            wrong = _softmax(inputs @ weights) - np.eye(CLASSES)[batch["label"]]
            weights -= STEP * inputs.T @ wrong / len(inputs)
    return weights


def accuracy(reader: tfr.Reader, records: np.ndarray, weights: np.ndarray) -> float:
    right = 0
    for batch in tfr.Loader(
        reader, 500, order=tfr.InOrder(indices=records), features=features("floats")
    ):
        right += int(((_with_bias(batch["image"]) @ weights).argmax(1) == batch["label"]).sum())
    return right / len(records)


def _with_bias(images: np.ndarray) -> np.ndarray:
    return np.concatenate([images / 255, np.ones((len(images), 1))], axis=1)


def _softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--train", type=int, default=10_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        digits = write_digits(Path(temporary), "floats", options.train)
        with tfr.Reader(digits.train) as reader:
            print("\n".join(show_records(reader)))
            split = split_records(reader)
            labels = labels_of(reader)
            epoch = balanced(labels, split.train, per_class=len(split.train) // CLASSES)
            print(f"classes of the balanced epoch: {np.bincount(labels[epoch])}")
            weights = train(reader, epoch)
            print(f"{accuracy(reader, split.validation, weights):.1%} of the validation right")
    assert "tensorflow" not in sys.modules


if __name__ == "__main__":
    main()
