"""accelerate(): a finished dataset, read by tfrfast as far as possible."""

from __future__ import annotations

import os
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow import internals
from tfrfast.tensorflow.compiling import gainful
from tfrfast.tensorflow.faults import why_theirs
from tfrfast.tensorflow.history import Refusal
from tfrfast.tensorflow.planned_dataset import SWITCH, AcceleratedDataset, PlannedDataset
from tfrfast.tensorflow.reading.chain import Unread
from tfrfast.tensorflow.slow_paths import warn_once


def accelerate(dataset: Any) -> Any:
    """Returns the same dataset, with its files read by tfrfast.

        names = tf.data.Dataset.list_files("train-*")
        records = names.interleave(tf.data.TFRecordDataset).shuffle(10_000)
        batches = tfr.accelerate(records.map(parse).batch(256).prefetch(2))

    Any library may have built `dataset`. Elements, spec and errors stay the same. Shuffles become
    exact and global, with each record once an epoch. Iterating the result opens the files.
    TensorFlow runs the calls that tfrfast cannot plan; `tfr.explain` describes each call, with the
    reason. Returns `dataset` itself if planning gains nothing, and with TFRFAST_ACCELERATE=0.
    """
    if not isinstance(dataset, tf.data.Dataset):
        raise TypeError(f"accelerate() takes a tf.data.Dataset, not {type(dataset).__name__}.")
    if os.environ.get(SWITCH) == "0" or not tf.executing_eagerly():
        return dataset
    if isinstance(dataset, PlannedDataset):
        return dataset
    if internals.missing():
        warn_once("names", "TensorFlow reads all datasets", why_theirs())
        return dataset
    faster, _ = acceleration_of(dataset)
    return dataset if faster is None else faster


def acceleration_of(dataset: Any) -> tuple[Any, Refusal]:
    """Returns the dataset for accelerate(); None and the reason if planning gains nothing.

    Opens no file.
    """
    tree = gainful(dataset)
    if isinstance(tree, Unread):
        return None, tree.why
    return AcceleratedDataset(dataset, tree), Refusal("")
