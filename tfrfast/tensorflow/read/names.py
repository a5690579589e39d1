"""The file names in a dataset of strings."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfrfast.tensorflow.read import nodes
from tfrfast.tensorflow.read.nodes import static_integer
from tfrfast.tensorflow.read.shuffles import is_kept
from tfrfast.tensorflow.reasons import Refusal
from tfrfast.tensorflow.sequence import part

_MAX_NAMES = 1_000_000
_SOURCES = {"from_tensor_slices", "from_tensors"}


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


def names_of(dataset: object) -> Names | Refusal:
    """Reads the names from the dataset's own tensors. Only a shuffle of names is iterated."""
    kind = nodes.kind(dataset)
    if kind in _SOURCES:
        return _given(dataset)
    if kind == "concatenate":
        return _concatenated(*map(names_of, nodes.inputs(dataset)))
    inputs, step = nodes.inputs(dataset), _STEPS.get(kind)
    if len(inputs) != 1 or step is None:
        return Refusal(f"the file names come from {kind or 'a dataset of another library'}")
    before = names_of(inputs[0])
    return before if isinstance(before, Refusal) else step(before, dataset)


def _given(dataset: object) -> Names | Refusal:
    tensors = nodes.attribute(dataset, "tensors") or []
    found = [tf.get_static_value(each) for each in tensors]
    known = [np.asarray(each, object) for each in found]  # a single string comes as bytes
    if not known or any(each is None for each in found) or known[0].size > _MAX_NAMES:
        return Refusal("the file names are not known before the program iterates")
    is_one = nodes.kind(dataset) == "from_tensors"
    if any(each.ndim != (0 if is_one else 1) for each in known):
        return Refusal("each element holds several file names")
    columns = [each.reshape(-1).tolist() for each in known]
    return Names(tuple(columns[0] if len(columns) == 1 else zip(*columns, strict=True)))


def _concatenated(*parts: Names | Refusal) -> Names | Refusal:
    files: tuple[bytes, ...] = ()
    for names in parts:
        if isinstance(names, Refusal):
            return names
        if names.shuffled or names.epochs != 1:
            return Refusal("names that are shuffled or repeated are concatenated")
        files += names.files
    return Names(files)


def _same(names: Names, _: object) -> Names:
    return names


def _repeated(names: Names, dataset: object) -> Names | Refusal:
    count = static_integer(nodes.attribute(dataset, "count"))
    if count is None:
        return Refusal("the file names come from repeat() with a count that is not known")
    if 0 in (count, names.epochs):
        return names._replace(epochs=0)
    if names.epochs is None or count < 0:
        return names._replace(epochs=None if names.files else 0)
    return names._replace(epochs=names.epochs * count)


def _shuffled(names: Names, dataset: object) -> Names | Refusal:
    if len(names.files) == 1 or (names.shuffled and is_kept(dataset)):
        return names
    has_others = any(isinstance(each, tuple) for each in names.files[:1])
    if is_kept(dataset) and names.epochs == 1 and not names.shuffled and not has_others:
        return Names(tuple(nodes.strings_of(dataset)))  # the order is the same in each iteration
    return names._replace(shuffled=True, shuffle=dataset)


def _part(names: Names, dataset: object) -> Names | Refusal:
    if nodes.takes_all(dataset):
        return names
    if names.shuffled or names.epochs != 1:
        return Refusal("a part is taken of names that are shuffled or repeated")
    kind, numbers = nodes.kind(dataset), nodes.numbers_of(dataset)
    if numbers is None or (kind == "shard" and not 0 <= numbers[1] < numbers[0]):
        return Refusal("the part of the names is not known")
    return Names(tuple(names.files[n] for n in part(range(len(names.files)), kind, *numbers)))


_STEPS = {
    "prefetch": _same,
    "repeat": _repeated,
    "shard": _part,
    "shuffle": _shuffled,
    "skip": _part,
    "take": _part,
    "with_options": _same,
}
