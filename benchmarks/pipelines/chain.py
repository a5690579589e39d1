"""A chain of calls on tf.data, as public programs write them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

AUTO = tf.data.AUTOTUNE
Fixed = tf.io.FixedLenFeature
Variable = tf.io.VarLenFeature


class Chain(NamedTuple):
    """A chain, and the programs that have it."""

    programs: str
    #: Takes file names, a batch size, and the number of epochs if the program repeats its data.
    build: Callable[[Sequence[str], int, int | None], Any]
    data: str
    batch: int
    #: The work that takes most of the time: "parsing", "inflating", "images", or "other".
    work: str = "parsing"
    #: A large buffer fills before the first batch, and is timed from there.
    fills_first: bool = False


def named(files: Sequence[str]) -> Any:
    return tf.data.Dataset.from_tensor_slices(list(files))


def listed(files: Sequence[str], shuffle: bool | None = None) -> Any:
    return tf.data.Dataset.list_files(list(files), shuffle=shuffle)


def read_split(files: Sequence[str]) -> Any:
    """Records as tensorflow_datasets reads a whole split."""
    unknown = np.full(len(files), -1)
    instructions = {"filename": list(files), "skip": 0 * unknown, "take": unknown}
    names = tf.data.Dataset.from_tensor_slices(instructions).shuffle(len(files))
    return names.interleave(
        lambda instruction: read(instruction["filename"]),
        cycle_length=16,
        block_length=16,
        num_parallel_calls=AUTO,
        deterministic=False,
    )


def read(name: Any) -> Any:
    return tf.data.TFRecordDataset(name)


def read_gzip(name: Any) -> Any:
    return tf.data.TFRecordDataset(name, compression_type="GZIP")


def dense(value: Any) -> Any:
    return tf.sparse.to_dense(value)


def parallel_interleave(*arguments: Any, **options: Any) -> Any:
    """Calls parallel_interleave(), whose name is deprecated: every use makes a warning."""
    return tf.data.experimental.parallel_interleave(*arguments, **options)
