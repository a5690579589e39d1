"""MNIST with Keras: read, shuffle, batch, repeat, train, and evaluate every example once.

    python examples/mnist_keras.py [--pixels bytes] [--train 10000] [--folder DIR]

The pipeline is the usual one. Only the class of the dataset differs.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import tensorflow as tf
from mnist_data import PIXELS, Digits, Pixels, write_digits

import tfrfast as tfr

BATCH_SIZE = 64
EVALUATION_BATCH_SIZE = 50


class Outcome(NamedTuple):
    accuracy: float
    evaluated: int


def parse(record: Any, pixels: Pixels) -> tuple[Any, Any]:
    kind = (
        tf.io.FixedLenFeature([PIXELS], tf.float32)
        if pixels == "floats"
        else tf.io.FixedLenFeature([], tf.string)
    )
    example = tf.io.parse_single_example(
        record, {"image": kind, "label": tf.io.FixedLenFeature([], tf.int64)}
    )
    image = example["image"]
    if pixels == "bytes":
        image = tf.cast(tf.io.decode_raw(image, tf.uint8), tf.float32)
    return tf.reshape(image, [28, 28, 1]) / 255, example["label"]


def train_dataset(files: list[str], pixels: Pixels, seed: int) -> Any:
    return (
        tfr.TFRecordDataset(files)
        .map(lambda record: parse(record, pixels), num_parallel_calls=tf.data.AUTOTUNE)
        .shuffle(10_000, seed=seed)  # exact over the whole set for any number
        .batch(BATCH_SIZE)
        .repeat()
        .prefetch(tf.data.AUTOTUNE)
    )


def test_dataset(files: list[str], pixels: Pixels) -> Any:
    return (
        tfr.TFRecordDataset(files)
        .map(lambda record: parse(record, pixels), num_parallel_calls=tf.data.AUTOTUNE)
        .batch(EVALUATION_BATCH_SIZE)
    )


def small_cnn() -> Any:
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            tf.keras.Input((28, 28, 1)),
            layers.Conv2D(8, 5, strides=2, activation="relu"),
            layers.Conv2D(16, 3, strides=2, activation="relu"),
            layers.Flatten(),
            layers.Dense(10),
        ]
    )
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, metrics=["accuracy"])
    return model


def train_and_evaluate(digits: Digits, pixels: Pixels, epochs: int = 2) -> Outcome:
    tf.keras.utils.set_random_seed(0)
    model = small_cnn()
    with tfr.Reader(digits.train) as reader:
        steps = -(-len(reader) // BATCH_SIZE)
    model.fit(
        train_dataset(digits.train, pixels, seed=0),
        steps_per_epoch=steps,
        epochs=epochs,
        verbose=2,
    )
    held_out = test_dataset(digits.test, pixels)
    _, accuracy = model.evaluate(held_out, verbose=0)
    evaluated = sum(int(labels.shape[0]) for _, labels in held_out)
    return Outcome(float(accuracy), evaluated)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pixels", choices=["floats", "bytes"], default="floats")
    parser.add_argument("--train", type=int, default=10_000)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        digits = write_digits(folder / options.pixels, options.pixels, options.train)
        outcome = train_and_evaluate(digits, options.pixels)
    print(f"{outcome.accuracy:.1%} of {outcome.evaluated} test examples right, each seen once")


if __name__ == "__main__":
    main()
