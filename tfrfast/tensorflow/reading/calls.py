"""Shows the calls of finished datasets as text."""

from __future__ import annotations

import re
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow.history import call_text
from tfrfast.tensorflow.reading import nodes
from tfrfast.tensorflow.reading.shuffles import noted_order

# The arguments that are shown of a call.
_SHOWN = {
    "batch": ("batch_size",),
    "padded_batch": ("batch_size",),
    "prefetch": ("buffer_size",),
    "rebatch": ("batch_sizes",),
    "repeat": ("count",),
    "shard": ("num_shards", "index"),
    "shuffle": ("buffer_size",),
    "skip": ("count",),
    "take": ("count",),
}


def call_of(dataset: Any) -> str:
    """Returns the call that made a dataset, approximately as written."""
    method = method_of(dataset)
    if method == "parse_example":
        return "parse_example({...})"
    if nodes.function_of(dataset) is not None:
        return f"{method}({nodes.function_name(dataset)})"
    values = [_value(nodes.attribute(dataset, name)) for name in _SHOWN.get(method, ())]
    if method == "repeat" and isinstance(values[0], int) and values[0] < 0:
        values = []
    if (noted := noted_order(dataset)) is not None:
        values = [] if noted.whole else values
        seed = _value(nodes.attribute(dataset, "seed2")) if noted.seeded else None
        return call_text(method, *values, seed=seed)
    drops = _value(nodes.attribute(dataset, "drop_remainder"))
    return call_text(method, *values, drop_remainder=True if drops is True else None)


def method_of(dataset: Any) -> str:
    """Returns the name of the call that made a dataset."""
    if nodes.is_enumeration(dataset):
        return "enumerate"
    kind = nodes.kind(dataset) or type(dataset).__name__
    bare = re.sub("^_|Parallel|Dataset(V[0-9])?$|Dataset(?=V)| in parallel$", "", kind)
    return re.sub("(?<=[a-z])(?=[A-Z])", "_", bare).lower()


def _value(given: Any) -> Any:
    known: Any = None if given is None else tf.get_static_value(given)
    return known.item() if getattr(known, "shape", None) == () else given
