"""File names in every form of TFRecordDataset: known or symbolic, patterns, URLs."""

from __future__ import annotations

import glob
import importlib.util
import os
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import tensorflow as tf

from tfrfast.order import Mixture
from tfrfast.reader import Reader
from tfrfast.storage.paths import expand_paths, natural_key, reach
from tfrfast.storage.remote.library import INSTALL
from tfrfast.storage.remote.options import Storage
from tfrfast.storage.remote.urls import is_object
from tfrfast.storage.schemes import ANY_SCHEME, SCHEMES, has_any_scheme, is_url
from tfrfast.tensorflow import internals
from tfrfast.tensorflow.library import end_waits_at_interrupts
from tfrfast.tensorflow.read.names import names_of
from tfrfast.tensorflow.read.shuffles import order_of
from tfrfast.tensorflow.reasons import Refusal
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
    """Raises the errors of `tf.data.TFRecordDataset`, whose own check is called.

    Replaces each pattern by its matches; an existing name is not a pattern. Raises NotFoundError
    for a pattern without a match, and ValueError for a URL that names no object. `storage` holds
    the options of the URLs, from now on.
    """
    if isinstance(filenames, Reader | Mixture):
        raise TypeError(
            f"{filenames!r} is not a file name. Give the names of the files, or let a Loader read "
            "it: tfr.Loader(reader, 128).to_tf_dataset()."
        )
    dataset = internals.dataset_of_names(filenames, name=name)
    if isinstance(filenames, tf.data.Dataset):
        found = _names_in(dataset)
    else:
        found = _given_names(dataset, name, storage)
    if found.known is not None:
        reach_urls(found.known, storage)
        return found
    end_waits_at_interrupts()  # the names may be URLs
    if storage.secrets:
        raise ValueError(
            f"storage has {', '.join(storage.secrets)}, and {found.why_unknown}. So it is not "
            "known yet which servers may see the secrets. Let the environment supply them, or pass "
            "names."
        )
    return found


def _given_names(dataset: Any, name: str | None, storage: Storage) -> FileNames:
    tensor = internals.attribute(dataset, "tensors")[0]
    known = tf.get_static_value(tensor)
    if known is None and tensor.op.type == "Reshape":  # in a graph, flattens the argument
        known = tf.get_static_value(tensor.op.inputs[0])
    if known is None:
        why = "its file names are known only in the graph"
        return FileNames(dataset, tensor, None, why_unknown=why)
    given = [bytes(each) for each in known.reshape(-1)]
    names = [found for name in given for found in _expanded(name, storage)]
    if names != given:
        dataset = internals.dataset_of_names(names, name=name)
        tensor = internals.attribute(dataset, "tensors")[0]
    return FileNames(dataset, tensor, names)


def _names_in(dataset: Any) -> FileNames:
    found = names_of(dataset) if tf.executing_eagerly() else Refusal("a graph is made")
    names = None if isinstance(found, Refusal) else found.repeated
    if isinstance(found, Refusal) or names is None:
        why = "its file names come from a dataset, and are known only by iterating it"
        return FileNames(dataset, None, None, why_unknown=why)
    if not found.shuffled:
        return FileNames(dataset, tf.constant(names, tf.string), names)
    order = None if found.shuffle is None or found.epochs != 1 else order_of(found.shuffle)
    if order is None:
        return FileNames(dataset, None, None, "its files come in a random order")
    return FileNames(dataset, None, names, shuffle=order)


def _expanded(name: bytes, storage: Storage) -> list[bytes]:
    if not glob.has_magic(name) or b"\0" in name:
        return [name]
    if has_scheme(name):
        return _expanded_by_theirs(name)
    try:
        return [os.fsencode(each) for each in expand_paths(name, storage)]
    except FileNotFoundError as error:
        raise tf.errors.NotFoundError(None, None, f"{error.strerror}.") from None
    except PermissionError as error:
        raise tf.errors.PermissionDeniedError(None, None, str(error)) from None


def _expanded_by_theirs(name: bytes) -> list[bytes]:
    try:
        if tf.io.gfile.exists(name):
            return [name]
        found = tf.io.gfile.glob(name.decode())
    except (tf.errors.OpError, UnicodeDecodeError):
        return [name]  # reading raises the error
    if not found:
        message = (
            f"No shard matches the pattern {name.decode()!r}. Check the folder and the spelling."
        )
        raise tf.errors.NotFoundError(None, None, message)
    return [each.encode() for each in sorted(found, key=natural_key)]


def has_scheme(name: bytes) -> bool:
    """True if only TensorFlow's own reader can read the name. Raises ModuleNotFoundError if it
    cannot.
    """
    url = name.decode(errors="replace")
    if not is_url(url):
        return has_any_scheme(url)
    if _can_read(url):
        return False
    scheme = url.partition(":")[0]
    if scheme in tf.io.gfile.get_registered_schemes():
        return True
    raise ModuleNotFoundError(f"Reading {scheme}:// needs obstore: {INSTALL}", name="obstore")


def is_ours(name: bytes) -> bool:
    """True for a URL that tfrfast reads."""
    return is_url(name.decode(errors="replace")) and not has_scheme(name)


def reach_urls(names: Iterable[bytes], storage: Storage) -> None:
    """Gives the URLs among the names their options. From now on Ctrl-C ends waits for URLs."""
    if urls := [os.fsdecode(each) for each in names if is_ours(each)]:
        end_waits_at_interrupts()
        reach(urls, storage)


def any_has_scheme(symbolic: Any) -> Any:
    """True if TensorFlow must read any name in a symbolic vector."""
    theirs = tf.strings.regex_full_match(symbolic, f"{ANY_SCHEME}(?s:.*)")
    if schemes := [re.escape(each) for each in SCHEMES if _can_read(f"{each}://")]:
        ours = tf.strings.regex_full_match(symbolic, f"({'|'.join(schemes)})://(?s:.*)")
        theirs = tf.logical_and(theirs, tf.logical_not(ours))
    return tf.reduce_any(theirs)


def _can_read(url: str) -> bool:
    return not is_object(url) or importlib.util.find_spec("obstore") is not None
