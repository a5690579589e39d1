"""Finished datasets of any origin, read by tfrfast as far as possible.

accelerate() replaces one dataset. install() replaces every dataset that the program iterates:
TensorFlow calls `DatasetV2._apply_debug_options` before every iterator, in loops, `reduce`,
`as_numpy_iterator`, Keras, strategies. Only that method is replaced.

Graphs that leave the process stay TensorFlow's, because other processes may lack the ops: graphs
for a tf.data service, a coordinator and remote devices. SavedModels and `save`, which do not use
the result, and `get_single_element`, which does not call the method, stay TensorFlow's, too.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow import explaining, internals
from tfrfast.tensorflow.compiling import gainful
from tfrfast.tensorflow.planned_dataset import SWITCH, AcceleratedDataset, PlannedDataset
from tfrfast.tensorflow.read import nodes
from tfrfast.tensorflow.read.chain import Unread
from tfrfast.tensorflow.reasons import warn_once, why_theirs

_plain: Any = getattr(internals.Dataset, "_apply_debug_options", None)
_planning = threading.local()
_FOUND = "_tfrfast_accelerated"


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
    if isinstance(dataset, PlannedDataset) or not tf.executing_eagerly() or not _is_possible():
        return dataset
    tree = gainful(dataset)
    return dataset if isinstance(tree, Unread) else AcceleratedDataset(dataset, tree)


def _is_possible() -> bool:
    """False if the switch forbids it, or this TensorFlow lacks a private name."""
    if os.environ.get(SWITCH) == "0":
        return False
    if internals.missing():
        warn_once("names", "TensorFlow reads all datasets", why_theirs())
        return False
    return True


def install() -> None:
    """Accelerates every dataset that this process iterates, like `tfr.accelerate`.

        import tfrfast.tensorflow
        tfrfast.tensorflow.install()

    A dataset object is accelerated once, at its first iteration. `python -m tfrfast run train.py`
    installs acceleration for an unchanged program. Does nothing with TFRFAST_ACCELERATE=0. With
    TFRFAST_EXPLAIN=1, the end of the program prints the treatment of each dataset. `uninstall()`
    ends the acceleration of further datasets.
    """
    if _is_possible():
        internals.Dataset._apply_debug_options = _accelerated
        explaining.begin_report()


def uninstall() -> None:
    """Leaves datasets whose first iteration comes later to TensorFlow."""
    internals.Dataset._apply_debug_options = _plain


def _accelerated(dataset: Any) -> Any:
    """Replaces `_apply_debug_options`."""
    caller = sys._getframe(1).f_globals.get("__name__", "")
    if (
        isinstance(dataset, PlannedDataset)
        or caller in internals.SERIALISING
        or getattr(_planning, "now", False)
    ):
        return _plain(dataset)
    _planning.now = True  # planning may iterate datasets, for example of file names
    try:
        faster = _found(dataset)
        return _plain(dataset) if faster is None else faster._apply_debug_options()
    finally:
        _planning.now = False


def _found(dataset: Any) -> Any:
    """Returns the dataset to iterate instead, the same for each use; None if planning gains
    nothing.
    """
    if _is_of_a_graph(dataset):
        return _in_a_graph(dataset)
    if _FOUND not in vars(dataset):
        with tf.init_scope():
            tree = gainful(dataset)
            faster = None if isinstance(tree, Unread) else AcceleratedDataset(dataset, tree)
        why_not = tree.why.why if isinstance(tree, Unread) else ""
        if vars(dataset).setdefault(_FOUND, faster) is faster:  # otherwise another thread was first
            explaining.report(dataset, faster, why_not)
            if faster is not None:
                _keep_out_of_saved_models(dataset, faster)
    return vars(dataset)[_FOUND]


def _keep_out_of_saved_models(dataset: Any, faster: Any) -> None:
    """Lets functions that captured `faster` use the saved form of `dataset` in a SavedModel."""
    children_of_plain = dataset._trackable_children

    def children(*arguments: Any, **named: Any) -> dict[str, Any]:
        found: dict[str, Any] = children_of_plain(*arguments, **named)
        plain = found.get("_variant_tracker")
        if plain is not None:  # TensorFlow finds the object to save by the captured tensor
            instead = type(plain)(internals.variant_of(faster), plain._create_resource)
            found["_tfrfast_variant_tracker"] = instead
        return found

    vars(dataset)["_trackable_children"] = children


def _in_a_graph(dataset: Any) -> Any:
    """Returns the replacement for a dataset that a tf.function's loop derives from another."""
    if not _is_of_a_graph(dataset):
        return _found(dataset)
    inputs = nodes.inputs(dataset)
    if not inputs or not nodes.can_be_moved(dataset):
        return None
    faster = [_in_a_graph(each) for each in inputs]
    if all(each is None for each in faster):
        return None
    both = zip(inputs, faster, strict=True)
    return nodes.moved(dataset, [old if new is None else new for old, new in both])


def _is_of_a_graph(dataset: Any) -> bool:
    return not tf.executing_eagerly() and tf.is_symbolic_tensor(internals.variant_of(dataset))
