"""The content of an iterator's checkpoint: positions alone, or also the elements read ahead.

TensorFlow's symbolic checkpoints hold positions. They are an option of a whole pipeline. With this
option, some datasets cannot be saved, and others take time for every element that they hold. So all
datasets of the pipeline decide when an iteration begins.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrfast.tensorflow import internals
from tfrfast.tensorflow.read.user_functions import has_state

# Datasets of TensorFlow between and after tfrfast's.
_NEVER_REWRITTEN = {"concatenate", "prefetch", "range", "repeat", "skip", "take", "with_options"}


def with_positions(source: Any) -> Any:
    """Marks a dataset that is large to save unless checkpoints hold positions alone."""
    source._tfrfast_has_positions = True
    return source


def holds_positions(dataset: Any) -> bool:
    """True if a marked source is part of the dataset."""
    return _is_source(dataset) or any(map(holds_positions, _inputs_of(dataset)))


def what_prevents(dataset: Any) -> str:
    """Returns why checkpoints of a dataset cannot hold positions alone; "" if they can."""
    options = internals.options_of(dataset)
    asked = options.experimental_symbolic_checkpoint
    if asked is not None:
        return "" if asked else "options switch symbolic checkpoints off"
    if options.deterministic is False:
        return "options.deterministic is False"
    if not _is_wrapper(dataset):
        return "the last dataset is not tfrfast's"
    return _what_prevents(dataset)


def saves_positions_unasked(dataset: Any) -> bool:
    """True if checkpoints should hold positions alone, and no option says whether they do."""
    asked = internals.options_of(dataset).experimental_symbolic_checkpoint
    return asked is None and holds_positions(dataset) and not what_prevents(dataset)


def _what_prevents(dataset: Any) -> str:
    if _is_source(dataset):
        return ""
    if not _is_wrapper(dataset) and not bears(dataset):
        kind = type(dataset).__name__.strip("_")
        return f"TensorFlow cannot save a position in its {kind}, or takes long to"
    if any(has_state(each.function) for each in internals.functions_of(dataset)):
        return "a function has a state, such as random numbers"
    return next(filter(None, map(_what_prevents, _inputs_of(dataset))), "")


def gains_by_rewriting(dataset: Any) -> bool:
    """True if the optimisations that TensorFlow makes unasked can make a dataset faster.

    They run user functions in parallel, and join calls. Datasets of tfrfast gain nothing, and
    TensorFlow would take 20 ms to find out when an iteration begins.
    """
    asked = internals.options_of(dataset).experimental_optimization
    if asked != tf.data.experimental.OptimizationOptions():
        return True
    is_ours = type(dataset).__module__.startswith("tfrfast.")
    if not is_ours and internals.maker_of(dataset).method not in _NEVER_REWRITTEN:
        return True
    return any(map(gains_by_rewriting, _inputs_of(dataset)))


def _inputs_of(dataset: Any) -> list[Any]:
    return [dataset._built] if _is_wrapper(dataset) else internals.inputs_of(dataset)


def _is_source(dataset: Any) -> bool:
    return hasattr(dataset, "_tfrfast_has_positions")


def _is_wrapper(dataset: Any) -> bool:
    """True for a dataset of tfrfast that stands for a built dataset."""
    return hasattr(type(dataset), "_built")


def bears(dataset: Any) -> bool:
    """True if TensorFlow can save a position in a dataset of its own, after any input."""
    is_ordered = internals.attribute(dataset, "deterministic") != "false"
    return is_ordered and internals.maker_of(dataset).bears
