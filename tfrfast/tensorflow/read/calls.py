"""Shows the calls of finished datasets as text."""

from __future__ import annotations

import re
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow import internals
from tfrfast.tensorflow.read import nodes
from tfrfast.tensorflow.read.shuffles import noted_order


def call_of(dataset: Any) -> str:
    """Returns the call that made a dataset, approximately as written."""
    method = method_of(dataset)
    if method == "parse_example":
        return "parse_example({...})"
    if nodes.function_of(dataset) is not None:
        return f"{method}({nodes.function_name(dataset)})"
    shown = internals.call_of(nodes.without_adapter(dataset)).shown
    values = [_text(nodes.attribute(dataset, name)) for name in shown]
    if method == "repeat" and values[0].startswith("-"):
        values = []
    if (noted := noted_order(dataset)) is not None:
        values = [] if noted.whole else values
        if noted.seeded:
            values.append(f"seed={_text(nodes.attribute(dataset, 'seed2'))}")
    elif _text(nodes.attribute(dataset, "drop_remainder")) == "True":
        values.append("drop_remainder=True")
    return f"{method}({', '.join(values)})"


def method_of(dataset: Any) -> str:
    """Returns the name of the call that made a dataset."""
    if nodes.is_enumeration(dataset):
        return "enumerate"
    kind = nodes.kind(dataset) or type(dataset).__name__
    bare = re.sub("^_|Parallel|Dataset(V[0-9])?$|Dataset(?=V)| in parallel$", "", kind)
    return re.sub("(?<=[a-z])(?=[A-Z])", "_", bare).lower()


def _text(given: Any) -> str:
    known: Any = None if given is None else tf.get_static_value(given)
    value = known.item() if getattr(known, "shape", None) == () else given
    if isinstance(value, (bool, int, float, str, bytes, type(None))):
        return repr(value)
    return "[...]" if isinstance(value, (list, tuple)) else "..."
