"""Recognises what tf.strings.split makes of one string, by the ops that TensorFlow traces."""

from __future__ import annotations

import functools
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow import internals


def whole_splits(graph: Any) -> dict[str, Any]:
    """The ops that return the first row of a split of one string, which is all there is.

    For each op's name, all parts of that string.
    """
    ops = graph.get_operations()
    if not any(op.type == "StringSplitV2" for op in ops):
        return {}
    last, found = _traced_split(), {}
    for op in ops:
        alike: dict[str, Any] = {}
        if op.type == last.type and _is_alike(op, last, alike):
            (split,) = (each for each in alike.values() if each.type == "StringSplitV2")
            found[op.name] = split.outputs[1]
    return found


@functools.cache
def _traced_split() -> Any:
    """The last op that TensorFlow uses to split one string."""

    @tf.function(autograph=False)
    def split(text: Any) -> Any:
        return tf.strings.split(text)

    graph = split.get_concrete_function(tf.TensorSpec([], tf.string)).graph
    return internals.before_return(graph.outputs[0]).op


def _is_alike(op: Any, other: Any, seen: dict[str, Any]) -> bool:
    """Whether two ops, and all between them and a split, are the same but for their names.

    `seen` are those found so far, by the names of the others.
    """
    if other.name in seen:
        return bool(seen[other.name].name == op.name)
    seen[other.name] = op
    if op.type != other.type or len(op.inputs) != len(other.inputs):
        return False
    if op.type == "StringSplitV2":
        return bool(op.inputs[0].shape == [1])
    return _attributes(op) == _attributes(other) and all(
        one.value_index == two.value_index and _is_alike(one.op, two.op, seen)
        for one, two in zip(op.inputs, other.inputs, strict=True)
    )


def _attributes(op: Any) -> dict[str, bytes]:
    attributes = op.node_def.attr.items()
    return {
        name: value.SerializeToString(deterministic=True)
        for name, value in attributes
        if not name.startswith("_")
    }
