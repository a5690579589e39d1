"""Data shaped like ImageNet: 1,024 shards of JPEGs, sorted by class, read the usual way and ours.

    python examples/imagenet.py [--shards 1024] [--records-per-shard 8]

Runs `model.fit` with both pipelines, and reports images a second and the mixing of an epoch. The
window holds the same share of these images as the usual window of 8,192 holds of ImageNet's.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

import tfrfast as tfr

SIDE = 64
BATCH_SIZE = 64
IMAGENET = 1_281_167
CLASSES = 16


class Quality(NamedTuple):
    """The mixing of an epoch."""

    missing: int
    repeated: int
    apart: float
    """The distance between two neighbours of a shard, as a part of the epoch. Fair is 1/3."""


def write_images(folder: Path, num_shards: int, per_shard: int) -> list[str]:
    """Writes records that hold their number, so that an epoch can be judged by its output."""
    random = np.random.default_rng(0)
    total = num_shards * per_shard
    paths = []
    folder.mkdir(parents=True, exist_ok=True)
    for shard in range(num_shards):
        path = folder / f"train-{shard:05d}-of-{num_shards:05d}"
        with tfr.Writer(path, sync=False, overwrite=True) as writer:
            for number in range(shard * per_shard, (shard + 1) * per_shard):
                label = number * CLASSES // total
                pixels = random.integers(0, 100, (SIDE, SIDE, 3)) + 10 * label
                jpeg = tf.io.encode_jpeg(pixels.astype(np.uint8)).numpy()
                writer.write_example({"image": jpeg, "label": label, "number": number})
        paths.append(str(path))
    return paths


def parse(record: Any) -> Any:
    return tf.io.parse_single_example(
        record,
        {
            "image": tf.io.FixedLenFeature([], tf.string),
            "label": tf.io.FixedLenFeature([], tf.int64),
            "number": tf.io.FixedLenFeature([], tf.int64),
        },
    )


def window(total: int) -> int:
    return max(1, 8192 * total // IMAGENET)


def usual_records(pattern: str, total: int) -> Any:
    """The usual way: list the files, shuffle them, interleave, shuffle a window."""
    return (
        tf.data.Dataset.list_files(pattern, shuffle=True, seed=0)
        .interleave(tf.data.TFRecordDataset, cycle_length=16, num_parallel_calls=tf.data.AUTOTUNE)
        .shuffle(window(total), seed=0)
    )


def our_records(pattern: str, total: int) -> Any:
    """Our way: an exact shuffle of all records of all shards, without a buffer."""
    return tfr.TFRecordDataset(tf.io.gfile.glob(pattern)).shuffle(total, seed=0)


def batches(records: Any) -> Any:
    """Adds the rest of the pipeline, which is the same for both."""

    def decode(record: Any) -> tuple[Any, Any]:
        example = parse(record)
        image = tf.ensure_shape(tf.io.decode_jpeg(example["image"], 3), [SIDE, SIDE, 3])
        return tf.cast(image, tf.float32) / 255, example["label"]

    auto = tf.data.AUTOTUNE
    return records.map(decode, num_parallel_calls=auto).batch(BATCH_SIZE).prefetch(auto)


def quality(records: Any, num_shards: int, per_shard: int) -> Quality:
    numbers = records.map(lambda record: parse(record)["number"]).batch(1024)
    order = np.concatenate(list(numbers.as_numpy_iterator()))
    total = num_shards * per_shard
    times = np.bincount(order, minlength=total)
    position_of = np.argsort(order)
    neighbours = position_of.reshape(num_shards, per_shard)
    return Quality(
        missing=int((times == 0).sum()),
        repeated=int((times > 1).sum()),
        apart=float(np.abs(np.diff(neighbours)).mean() / total),
    )


def images_per_s(datasets: dict[str, Any], rounds: int = 5) -> dict[str, float]:
    """Returns medians of epochs. The datasets alternate, so a slow machine slows both."""
    rates: dict[str, list[float]] = {name: [] for name in datasets}
    for _ in range(rounds):
        for name, dataset in datasets.items():
            began = time.perf_counter()
            images = sum(int(labels.shape[0]) for _, labels in dataset)
            rates[name].append(images / (time.perf_counter() - began))
    return {name: statistics.median(each) for name, each in rates.items()}


def small_model() -> Any:
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            tf.keras.Input((SIDE, SIDE, 3)),
            layers.AveragePooling2D(8),
            layers.Flatten(),
            layers.Dense(CLASSES),
        ]
    )
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, metrics=["accuracy"])
    return model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--shards", type=int, default=1024)
    parser.add_argument("--records-per-shard", type=int, default=8)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "imagenet"
        write_images(folder, options.shards, options.records_per_shard)
        pattern = str(folder / "train-*")
        total = options.shards * options.records_per_shard
        records = {
            "usual": usual_records(pattern, total),
            "tfrfast": our_records(pattern, total),
        }
        datasets = {name: batches(each) for name, each in records.items()}
        rates = images_per_s(datasets)
        for name, dataset in datasets.items():
            tf.keras.utils.set_random_seed(0)
            history = small_model().fit(dataset, epochs=2, verbose=0)
            mixed = quality(records[name], options.shards, options.records_per_shard)
            print(
                f"{name:8} {rates[name]:8,.0f} images/s  loss {history.history['loss'][-1]:.3f}  "
                f"{mixed.missing} missing, {mixed.repeated} repeated, "
                f"neighbours come {mixed.apart:.3f} of an epoch apart (fair 0.333)"
            )


if __name__ == "__main__":
    main()
