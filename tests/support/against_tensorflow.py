"""Datasets of tfrfast beside TensorFlow's own, and iterators that are saved and restored."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import tensorflow as tf

import tfrfast as tfr
from example_files import elements, outcomes


def both(files: Any, chain: Callable[[Any], Any], **options: Any) -> tuple[Any, Any]:
    """Returns the chain after our class and after TensorFlow's. Both have the same specs."""
    ours, theirs = (chain(library.TFRecordDataset(files, **options)) for library in (tfr, tf.data))
    assert ours.element_spec == theirs.element_spec
    return ours, theirs


def assert_alike(ours: Any, theirs: Any) -> None:
    """The same specs, elements and errors."""
    assert ours.element_spec == theirs.element_spec
    assert outcomes(ours) == outcomes(theirs)


def gathered(batches: Any) -> Any:
    """Returns each component of all batches, end to end, also in a tf.function."""

    def empty(spec: Any) -> Any:
        return tf.zeros([0, *spec.shape[1:]], spec.dtype)

    def joined(before: Any, batch: Any) -> Any:
        return tf.nest.map_structure(lambda *parts: tf.concat(parts, 0), before, batch)

    return batches.reduce(tf.nest.map_structure(empty, batches.element_spec), joined)


def resumed(make: Callable[[], Any], position: int, folder: Path) -> tuple[list[Any], list[Any]]:
    """Returns the elements that follow `position`: those of the iterator that was saved there, and
    those of an iterator that was restored there.
    """
    iterator = iter(make())
    for _ in range(position):
        next(iterator)
    path = tf.train.Checkpoint(iterator=iterator).write(str(folder / f"at-{position}"))
    restored = iter(make())
    tf.train.Checkpoint(iterator=restored).read(path).assert_consumed()
    return elements(iterator), elements(restored)
