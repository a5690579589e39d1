"""MNIST with tf.estimator (TensorFlow 2.15). Only the dataset's class in `input_fn` changes.

python examples/mnist_estimator.py [--train 10000]
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import tensorflow as tf
from mnist_data import PIXELS, Digits, write_digits

import tfrfast as tfr

BATCH_SIZE = 64


def parse(record: Any) -> tuple[Any, Any]:
    example = tf.io.parse_single_example(
        record,
        {
            "image": tf.io.FixedLenFeature([PIXELS], tf.float32),
            "label": tf.io.FixedLenFeature([], tf.int64),
        },
    )
    return example["image"] / 255, example["label"]


def input_fn(files: list[str], training: bool, dataset_class: Any) -> Any:
    """`dataset_class` is tf.data.TFRecordDataset or tfr.TFRecordDataset; nothing else differs."""
    dataset = dataset_class(files).map(parse, num_parallel_calls=tf.data.AUTOTUNE)
    if training:
        dataset = dataset.shuffle(10_000, seed=0).repeat()
    return dataset.batch(BATCH_SIZE).prefetch(tf.data.AUTOTUNE)


def model_fn(features: Any, labels: Any, mode: Any) -> Any:
    v1 = tf.compat.v1
    hidden = tf.keras.layers.Dense(64, "relu")
    output = tf.keras.layers.Dense(10)
    logits = output(hidden(features))
    loss = v1.losses.sparse_softmax_cross_entropy(labels, logits)
    train = v1.train.AdamOptimizer().minimize(loss, v1.train.get_or_create_global_step())
    right = v1.metrics.accuracy(labels, tf.argmax(logits, axis=1))
    ones = tf.ones_like(labels)
    counted = v1.metrics.true_positives(ones, ones)
    return tf.estimator.EstimatorSpec(
        mode,
        loss=loss,
        train_op=train,
        eval_metric_ops={"accuracy": right, "examples": counted},
    )


def train_and_evaluate(
    digits: Digits, model_dir: Path, steps: int, dataset_class: Any = None
) -> dict[str, float]:
    source = dataset_class or tfr.TFRecordDataset
    config = tf.estimator.RunConfig(tf_random_seed=0, model_dir=str(model_dir))
    estimator = tf.estimator.Estimator(model_fn, config=config)
    estimator.train(lambda: input_fn(digits.train, True, source), steps=steps)
    metrics: dict[str, float] = estimator.evaluate(lambda: input_fn(digits.test, False, source))
    return metrics


def main() -> None:
    if not hasattr(tf, "estimator"):
        raise SystemExit(f"TensorFlow {tf.__version__} has no tf.estimator; 2.15 is the last.")
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--train", type=int, default=10_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        digits = write_digits(folder / "data", "floats", options.train)
        metrics = train_and_evaluate(digits, folder / "model", 2 * options.train // BATCH_SIZE)
    print(f"{metrics['accuracy']:.1%} of {metrics['examples']:.0f} test examples right")


if __name__ == "__main__":
    main()
