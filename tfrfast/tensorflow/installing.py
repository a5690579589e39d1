"""install(): every dataset that the program iterates is accelerated, whoever built it.

TensorFlow calls `DatasetV2._apply_debug_options` for whatever makes an iterator: loops, `reduce`,
`as_numpy_iterator`, Keras, strategies. This file replaces that method, and nothing else.

What leaves the process stays TensorFlow's, as other processes need not know our ops: graphs for a
tf.data service, a coordinator and remote devices. So do SavedModels and `save`, which do not use
the result, and `get_single_element`, which does not call the method.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow import internals, telling
from tfrfast.tensorflow.accelerating import SWITCH, acceleration_of
from tfrfast.tensorflow.lazy_dataset import LazyDataset
from tfrfast.tensorflow.reading import nodes

_plain: Any = internals.Dataset._apply_debug_options
_planning = threading.local()
_FOUND = "_tfrfast_accelerated"


def install() -> None:
    """Accelerates every dataset that this process iterates, as `tfr.accelerate` does.

        import tfrfast.tensorflow
        tfrfast.tensorflow.install()

    A dataset object is accelerated once, when it is first iterated. `python -m tfrfast run
    train.py` does this for a program without a line of it changed. Does nothing with
    TFRFAST_ACCELERATE=0. With TFRFAST_EXPLAIN=1, the end of the program prints what became of each
    dataset. `uninstall()` is the way back; what was accelerated before stays so.
    """
    if os.environ.get(SWITCH) == "0":
        return
    internals.Dataset._apply_debug_options = _accelerated
    telling.begin()


def uninstall() -> None:
    """Datasets that are iterated for the first time from now on are TensorFlow's."""
    internals.Dataset._apply_debug_options = _plain


def _accelerated(dataset: Any) -> Any:
    """In the place of `_apply_debug_options`."""
    caller = sys._getframe(1).f_globals.get("__name__", "")
    if (
        isinstance(dataset, LazyDataset)
        or caller in internals.SERIALISING
        or getattr(_planning, "now", False)
    ):
        return _plain(dataset)
    _planning.now = True  # which iterates names of files, for example
    try:
        faster = _found(dataset)
        return _plain(dataset) if faster is None else faster._apply_debug_options()
    finally:
        _planning.now = False


def _found(dataset: Any) -> Any:
    """What is iterated instead; None if nothing is gained. The same for each use of the object."""
    if _is_of_a_graph(dataset):
        return _in_a_graph(dataset)
    if _FOUND not in vars(dataset):
        faster = None
        try:
            with tf.init_scope():
                faster, why_not = acceleration_of(dataset)
            reason = why_not.why
        except Exception as error:  # what we fail to understand is TensorFlow's
            reason = f"reading it failed: {error}"
        if vars(dataset).setdefault(_FOUND, faster) is faster:  # else another thread was first
            telling.note(dataset, faster, reason)
            if faster is not None:
                _keep_out_of_saved_models(dataset, faster)
    return vars(dataset)[_FOUND]


def _keep_out_of_saved_models(dataset: Any, faster: Any) -> None:
    """Functions captured `faster`; in a SavedModel they get what `dataset` is saved as."""
    children_of_plain = dataset._trackable_children

    def children(*arguments: Any, **named: Any) -> dict[str, Any]:
        found: dict[str, Any] = children_of_plain(*arguments, **named)
        plain = found.get("_variant_tracker")
        if plain is not None:  # TensorFlow finds what to save by the tensor that was captured
            instead = type(plain)(internals.variant_of(faster), plain._create_resource)
            found["_tfrfast_variant_tracker"] = instead
        return found

    vars(dataset)["_trackable_children"] = children


def _in_a_graph(dataset: Any) -> Any:
    """A loop in a tf.function makes datasets of the one that it is given."""
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
