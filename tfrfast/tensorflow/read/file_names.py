"""File names: those in a dataset, and every form of TFRecordDataset: known or symbolic, patterns,
URLs.
"""

from __future__ import annotations

import glob
import importlib.util
import os
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfrfast.order import Mixture
from tfrfast.reader import Reader
from tfrfast.storage.paths import expand_paths, natural_key, reach
from tfrfast.storage.remote.library import INSTALL
from tfrfast.storage.remote.options import Storage
from tfrfast.storage.schemes import ANY_SCHEME, SCHEMES, has_any_scheme, is_url
from tfrfast.tensorflow import internals
from tfrfast.tensorflow.library import end_waits_at_interrupts
from tfrfast.tensorflow.read import nodes
from tfrfast.tensorflow.read.nodes import static_integer
from tfrfast.tensorflow.read.shuffles import is_kept, order_of
from tfrfast.tensorflow.reasons import RefusedError
from tfrfast.tensorflow.sequence import SeededOrder, part

_MAX_NAMES = 1_000_000
_SOURCES = {"from_tensor_slices", "from_tensors"}


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

    Replaces each pattern by its matches, and each folder by its shards; an existing file is not a
    pattern. Raises NotFoundError
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
    try:
        found = names_of(dataset) if tf.executing_eagerly() else None
    except RefusedError:
        found = None
    names = None if found is None else found.repeated
    if found is None or names is None:
        why = "its file names come from a dataset, and are known only by iterating it"
        return FileNames(dataset, None, None, why_unknown=why)
    if not found.shuffled:
        return FileNames(dataset, tf.constant(names, tf.string), names)
    order = None if found.shuffle is None or found.epochs != 1 else order_of(found.shuffle)
    if order is None:
        return FileNames(dataset, None, None, "its files come in a random order")
    return FileNames(dataset, None, names, shuffle=order)


def _expanded(name: bytes, storage: Storage) -> list[bytes]:
    is_file = not glob.has_magic(name) and not name.endswith(b"/")
    if b"\0" in name or (is_file and not os.path.isdir(name)):
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
    if _has_obstore():
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
    if _has_obstore():
        ours = tf.strings.regex_full_match(symbolic, f"({'|'.join(SCHEMES)})://(?s:.*)")
        theirs = tf.logical_and(theirs, tf.logical_not(ours))
    return tf.reduce_any(theirs)


def _has_obstore() -> bool:
    return importlib.util.find_spec("obstore") is not None


class Names(NamedTuple):
    """File names in order. If a name comes with other values, its entry is a tuple of them all."""

    files: tuple[Any, ...]
    #: True if each epoch may have the names in another order.
    shuffled: bool = False
    #: The shuffle() of all names; None if they are not shuffled, or in parts.
    shuffle: Any = None
    #: The number of repetitions of the names; None: without end.
    epochs: int | None = 1

    @property
    def repeated(self) -> list[bytes] | None:
        """Returns the names of all epochs; None if they are endless or too many."""
        if self.epochs is None or len(self.files) * self.epochs > _MAX_NAMES:
            return None
        return [*self.files] * self.epochs


def names_of(dataset: object) -> Names:
    """Reads the names from the dataset's own tensors. Only a shuffle of names is iterated.

    Raises RefusedError.
    """
    method = nodes.method_of(dataset)
    if method in _SOURCES:
        return _given(dataset)
    if method == "concatenate":
        return _concatenated(*map(names_of, nodes.inputs(dataset)))
    inputs, step = nodes.inputs(dataset), _STEPS.get(method)
    if len(inputs) != 1 or step is None:
        made_by = method or "a dataset of another library"
        raise RefusedError(f"tfrfast does not read file names that come from {made_by}")
    return step(names_of(inputs[0]), dataset)


def _given(dataset: object) -> Names:
    tensors = nodes.attribute(dataset, "tensors") or []
    found = [tf.get_static_value(each) for each in tensors]
    known = [np.asarray(each, object) for each in found]  # a single string comes as bytes
    if not known or any(each is None for each in found) or known[0].size > _MAX_NAMES:
        raise RefusedError("the file names are not known before the program iterates")
    is_one = nodes.method_of(dataset) == "from_tensors"
    if any(each.ndim != (0 if is_one else 1) for each in known):
        raise RefusedError("tfrfast does not read elements of several file names")
    columns = [each.reshape(-1).tolist() for each in known]
    return Names(tuple(columns[0] if len(columns) == 1 else zip(*columns, strict=True)))


def _concatenated(*parts: Names) -> Names:
    files: tuple[bytes, ...] = ()
    for names in parts:
        if names.shuffled or names.epochs != 1:
            raise RefusedError("tfrfast does not join names that are shuffled or repeated")
        files += names.files
    return Names(files)


def _same(names: Names, _: object) -> Names:
    return names


def _repeated(names: Names, dataset: object) -> Names:
    count = static_integer(nodes.attribute(dataset, "count"))
    if count is None:
        raise RefusedError("the file names come from repeat() with a count that is not known")
    if 0 in (count, names.epochs):
        return names._replace(epochs=0)
    if names.epochs is None or count < 0:
        return names._replace(epochs=None if names.files else 0)
    return names._replace(epochs=names.epochs * count)


def _shuffled(names: Names, dataset: object) -> Names:
    if len(names.files) == 1 or (names.shuffled and is_kept(dataset)):
        return names
    has_others = any(isinstance(each, tuple) for each in names.files[:1])
    if is_kept(dataset) and names.epochs == 1 and not names.shuffled and not has_others:
        kept = nodes.without_adapter(dataset)  # the order is the same in each iteration
        return Names(tuple(map(bytes, kept.as_numpy_iterator())))
    return names._replace(shuffled=True, shuffle=dataset)


def _part(names: Names, dataset: object) -> Names:
    if nodes.takes_all(dataset):
        return names
    if names.shuffled or names.epochs != 1:
        raise RefusedError("tfrfast does not take a part of names that are shuffled or repeated")
    method, numbers = nodes.method_of(dataset), nodes.numbers_of(dataset)
    if numbers is None or (method == "shard" and not 0 <= numbers[1] < numbers[0]):
        raise RefusedError("the part of the names is not known")
    return Names(tuple(names.files[n] for n in part(range(len(names.files)), method, *numbers)))


_STEPS = {
    "prefetch": _same,
    "repeat": _repeated,
    "shard": _part,
    "shuffle": _shuffled,
    "skip": _part,
    "take": _part,
    "with_options": _same,
}
