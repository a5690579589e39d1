"""File names in every form of TFRecordDataset, and the names that are known before a graph runs."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import tensorflow as tf

from tfrfast.order import Mixture
from tfrfast.reader import Reader
from tfrfast.storage.paths import reach
from tfrfast.storage.remote.options import Storage
from tfrfast.tensorflow import internals
from tfrfast.tensorflow.history import Refusal
from tfrfast.tensorflow.library import end_waits_at_interrupts
from tfrfast.tensorflow.patterns import expand_patterns
from tfrfast.tensorflow.reading.names import names_of
from tfrfast.tensorflow.reading.shuffles import order_of
from tfrfast.tensorflow.schemes import has_scheme, is_ours
from tfrfast.tensorflow.sequence import SeededOrder


class FileNames(NamedTuple):
    """Names in every available form."""

    dataset: Any  # of scalar strings
    tensor: Any  # a vector; None if the names come from a dataset
    known: list[bytes] | None  # None if the names are symbolic, or only iterating tells them
    why_unknown: str = ""
    shuffle: SeededOrder | None = None  # the order of `known` in each iteration; None: as they are

    @property
    def has_scheme(self) -> bool:
        return self.known is not None and any(map(has_scheme, self.known))


def file_names(filenames: Any, name: str | None, storage: Storage) -> FileNames:
    """Raises the errors of `tf.data.TFRecordDataset`, whose own check is called."""
    if isinstance(filenames, Reader | Mixture):
        raise TypeError(
            f"{filenames!r} is not a file name. Give the names of the files, or let a Loader read "
            "it: tfr.Loader(reader, 128).to_tf_dataset()."
        )
    found = _file_names(filenames, name, storage)
    if found.known is None:
        end_waits_at_interrupts()  # the names may be URLs
    if storage.secrets and found.known is None:
        raise ValueError(
            f"storage has {', '.join(storage.secrets)}, and {found.why_unknown}. So it is not "
            "known yet which servers may see the secrets. Let the environment supply them, or pass "
            "names."
        )
    return found


def _file_names(filenames: Any, name: str | None, storage: Storage) -> FileNames:
    dataset = internals.dataset_of_names(filenames, name=name)
    if isinstance(filenames, tf.data.Dataset):
        return _names_in(dataset, storage)
    tensor = internals.attribute(dataset, "tensors")[0]
    known = tf.get_static_value(tensor)
    if known is None and tensor.op.type == "Reshape":  # in a graph, flattens the argument
        known = tf.get_static_value(tensor.op.inputs[0])
    if known is None:
        why = "its file names are known only in the graph"
        return FileNames(dataset, tensor, None, why_unknown=why)
    given = [bytes(each) for each in known.reshape(-1)]
    names = expand_patterns(given, storage)
    if names != given:
        dataset = internals.dataset_of_names(names, name=name)
        tensor = internals.attribute(dataset, "tensors")[0]
    return FileNames(dataset, tensor, names)


def _names_in(dataset: Any, storage: Storage) -> FileNames:
    found = names_of(dataset) if tf.executing_eagerly() else Refusal("a graph is made")
    names = None if isinstance(found, Refusal) else found.repeated
    if isinstance(found, Refusal) or names is None:
        why = "its file names come from a dataset, and are known only by iterating it"
        return FileNames(dataset, None, None, why_unknown=why)
    if urls := [os.fsdecode(each) for each in names if is_ours(each)]:
        reach(urls, storage)
    if not found.shuffled:
        return FileNames(dataset, tf.constant(names, tf.string), names)
    order = None if found.shuffle is None or found.epochs != 1 else order_of(found.shuffle)
    if order is None:
        return FileNames(dataset, None, None, "its files come in a random order")
    return FileNames(dataset, None, names, shuffle=order)
