"""File names that come as a tf.data.Dataset, where they can be known when that is made."""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

_SOURCES = {"_TensorSliceDataset", "_TensorDataset"}
# Their elements follow from those of their inputs, without a function of the user's.
_STEPS = {
    "_ConcatenateDataset",
    "_PrefetchDataset",
    "_RepeatDataset",
    "_ShardDataset",
    "_SkipDataset",
    "_TakeDataset",
}
_MAX_NAMES = 1_000_000


class Listed(NamedTuple):
    names: list[bytes]
    #: Whether each iteration may give them in another order.
    shuffled: bool


def listed(dataset: Any) -> Listed | None:
    """The names in a dataset such as list_files() makes; None where they cannot be known."""
    if not tf.executing_eagerly():
        return None
    shuffled = False
    while _kind(dataset) in ("_ShuffleDataset", "_PrefetchDataset"):
        # Its own input is read: iterating a shuffle would change its later orders.
        shuffled = shuffled or _kind(dataset) == "_ShuffleDataset"
        (dataset,) = dataset._inputs()
    if not _is_constant(dataset):
        return None
    with tf.device("CPU:0"):  # wherever the user is about to place ops
        if not 0 <= int(dataset.cardinality()) <= _MAX_NAMES:
            return None
        return Listed([bytes(name) for name in dataset.as_numpy_iterator()], shuffled)


def _is_constant(dataset: Any) -> bool:
    if _kind(dataset) in _SOURCES:
        return True
    return _kind(dataset) in _STEPS and all(map(_is_constant, dataset._inputs()))


def _kind(dataset: Any) -> str:
    kind = type(dataset)
    return kind.__name__ if kind.__module__.startswith("tensorflow.python.data.ops.") else ""
