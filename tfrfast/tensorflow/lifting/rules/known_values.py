"""Values that are known before a run, because they depend only on constants."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import tensorflow as tf

#: Ops of sizes and bounds that TensorFlow does not compute in advance.
_COMPUTED = frozenset(
    [
        *("AddV2", "Cast", "ConcatV2", "ExpandDims", "Identity", "Maximum", "Minimum", "Mul"),
        *("Pack", "Reshape", "Slice", "Squeeze", "StridedSlice", "Sub"),
    ]
)
_MAX_VALUES = 1000
#: Inputs and attributes whose Python names differ.
_RENAMED = {"ExpandDims": {"axis": "dim"}, "Squeeze": {"axis": "squeeze_dims"}}


def known_value(tensor: Any) -> Any:
    """Returns the value as a NumPy array; None if it is unknown. Only small values are computed."""
    return _value_of(tensor, {})


def _value_of(tensor: Any, found: dict[str, Any]) -> Any:
    """`found` holds the values looked up so far, by the names of their tensors."""
    if tensor.name not in found:
        value = tf.get_static_value(tensor)
        found[tensor.name] = _computed(tensor.op, found) if value is None else np.asarray(value)
    return found[tensor.name]


def _computed(op: Any, found: dict[str, Any]) -> Any:
    if op.type not in _COMPUTED or not 0 < len(op.inputs) < 10:
        return None
    given = [_value_of(each, found) for each in op.inputs]
    if any(each is None or each.size > _MAX_VALUES for each in given):
        return None
    kind, renamed = getattr(tf.raw_ops, op.type), _RENAMED.get(op.type, {})
    inputs: dict[str, Any] = {}
    with tf.init_scope():
        tensors = list(map(tf.constant, given))
        for each in op.op_def.input_arg:
            if each.number_attr:
                count = op.get_attr(each.number_attr)
                inputs[each.name], tensors = tensors[:count], tensors[count:]
            else:
                inputs[each.name] = tensors.pop(0)
        arguments: dict[str, Any] = {}
        for parameter in inspect.signature(kind).parameters:
            if parameter != "name":
                name = renamed.get(parameter, parameter)
                arguments[parameter] = inputs[name] if name in inputs else op.get_attr(name)
        try:
            made = kind(**arguments)
        except (ValueError, TypeError, tf.errors.OpError):
            return None
        return made.numpy() if hasattr(made, "numpy") else None
