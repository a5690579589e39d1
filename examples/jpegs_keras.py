"""JPEGs for Keras: a Loader's threads read, check and decode; Keras only trains.

    python examples/jpegs_keras.py [--images 4000] [--epochs 3]

The decoder is TensorFlow's. Any other function of bytes works, with any backend of Keras.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf

import tfrfast as tfr

SIDE, CLASSES, BATCH_SIZE = 48, 10, 64
FEATURES = {"image": tfr.FixedLen((), "bytes"), "label": tfr.FixedLen((), "int64")}


class Outcome(NamedTuple):
    accuracy: float
    evaluated: int
    images_per_s: float


def write_images(folder: Path, count: int) -> None:
    """Writes noisy squares, each of its class's color."""
    random = np.random.default_rng(0)
    labels = random.integers(0, CLASSES, count)
    colors = random.integers(60, 196, (CLASSES, 1, 1, 3))
    with tfr.ShardedWriter(folder / "photos", num_shards=4) as writer:
        for label in labels.tolist():
            pixels = colors[label] + random.normal(0, 50, (SIDE, SIDE, 3))
            jpeg = tf.io.encode_jpeg(np.clip(pixels, 0, 255).astype(np.uint8)).numpy()
            writer.write_example({"image": jpeg, "label": label})


def decode(batch: tfr.Batch) -> tfr.Batch:
    """Runs in the Loader's threads: decoders and NumPy release the GIL."""
    pictures = [tf.io.decode_jpeg(jpeg).numpy() for jpeg in batch["image"].tolist()]
    batch["image"] = np.stack(pictures).astype(np.float32) / 255
    return batch


def train_and_evaluate(folder: Path, epochs: int) -> Outcome:
    reader = tfr.Reader(folder / "photos-*")
    held_out = len(reader) // 5
    train = tfr.Loader(
        reader,
        BATCH_SIZE,
        order=tfr.Shuffle(1, indices=np.arange(held_out, len(reader))),
        features=FEATURES,
        transform=decode,
    )
    test = tfr.Loader(
        reader,
        BATCH_SIZE,
        order=tfr.InOrder(indices=np.arange(held_out)),
        features=FEATURES,
        transform=decode,
    )
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((SIDE, SIDE, 3)),
            layers.Conv2D(8, 5, strides=4, activation="relu"),
            layers.GlobalAveragePooling2D(),
            layers.Dense(CLASSES, activation="softmax"),
        ]
    )
    model.compile(
        keras.optimizers.Adam(0.02), "sparse_categorical_crossentropy", metrics=["accuracy"]
    )
    began = time.perf_counter()
    model.fit(train.to_keras(features="image", label="label"), epochs=epochs, verbose=0)
    rate = epochs * train.plan.positions / (time.perf_counter() - began)
    _, accuracy = model.evaluate(test.to_keras(features="image", label="label"), verbose=0)
    return Outcome(accuracy, test.plan.positions, rate)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=4000)
    parser.add_argument("--epochs", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write_images(Path(folder), options.images)
        outcome = train_and_evaluate(Path(folder), options.epochs)
    print(
        f"accuracy {outcome.accuracy:.2f} of {outcome.evaluated} images, "
        f"trained on {outcome.images_per_s:,.0f} images/s"
    )


if __name__ == "__main__":
    main()
