"""File names as TFRecordDataset takes them: what can be known of them before a graph runs."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import tensorflow as tf
from tensorflow.python.data.ops import readers

_SCHEME = r"[A-Za-z][A-Za-z0-9+.\-]*://"


class FileNames(NamedTuple):
    """Names in every form that is at hand."""

    dataset: Any  # of scalar strings
    tensor: Any  # a vector; None if the user gave a dataset
    known: list[bytes] | None  # None if they are symbolic


def file_names(filenames: Any, name: str | None = None) -> FileNames:
    """Raises what `tf.data.TFRecordDataset` raises, because its own check is asked."""
    dataset = readers._create_or_validate_filenames_dataset(filenames, name=name)
    if isinstance(filenames, tf.data.Dataset):
        return FileNames(dataset, None, None)
    tensor = dataset._tensors[0]
    known = tf.get_static_value(tensor)
    if known is None and tensor.op.type == "Reshape":  # in a graph, to flatten what was given
        known = tf.get_static_value(tensor.op.inputs[0])
    if known is None:
        return FileNames(dataset, tensor, None)
    return FileNames(dataset, tensor, [bytes(each) for each in known.reshape(-1)])


def has_scheme(name: bytes) -> bool:
    """Whether `name` belongs to one of TensorFlow's filesystems, such as gs://."""
    return re.match(_SCHEME.encode(), name) is not None


def any_has_scheme(symbolic: Any) -> Any:
    """The same for a symbolic vector of names."""
    return tf.reduce_any(tf.strings.regex_full_match(symbolic, f"{_SCHEME}(?s:.*)"))
