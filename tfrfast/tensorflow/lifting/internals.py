"""What TensorFlow tells of a map function only under private names.

Where a name is missing, nothing is lifted, and `tfr.explain` says so.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any, NamedTuple

import tensorflow as tf

MISSING = "this TensorFlow does not show what a map() traced"


def traced(mapped: Any) -> Any:
    """The function that a map() has traced, a ConcreteFunction; None if it cannot be had."""
    return _traced(mapped, "_map_func")


def _traced(mapped: Any, where: str) -> Any:
    function = getattr(getattr(mapped, where, None), "function", None)
    return function if _is_whole(function) else None


def _is_whole(function: Any) -> bool:
    graph = getattr(function, "graph", None)
    return all(
        hasattr(graph, name) for name in ("inputs", "outputs", "control_outputs", "captures")
    )


class _Making(NamedTuple):
    """How TensorFlow makes a dataset that calls a function."""

    op: Any
    attribute: str  # of the dataset, which holds the function
    argument: str  # of the op, which takes it


_MAKINGS = {
    "_FilterDataset": _Making(tf.raw_ops.FilterDataset, "_predicate", "predicate"),
    "_MapDataset": _Making(tf.raw_ops.MapDataset, "_map_func", "f"),
    "_ParallelMapDataset": _Making(tf.raw_ops.ParallelMapDatasetV2, "_map_func", "f"),
}


def can_be_moved(made: Any) -> bool:
    """Whether a map() or filter() that has been traced for one dataset can be put after another."""
    making = _MAKINGS.get(type(made).__name__)
    return (
        making is not None
        and _traced(made, making.attribute) is not None
        and hasattr(made, "_common_args")
        and all(hasattr(made, f"_{name}") for name in _options_of(making))
    )


def moved(made: Any, dataset: Any) -> Any:
    """The same map() or filter() after another dataset, whose elements are like the first one's."""
    making = _MAKINGS[type(made).__name__]
    function = _traced(made, making.attribute)
    variant = making.op(
        input_dataset=dataset._variant_tensor,
        other_arguments=function.captured_inputs,
        **{making.argument: function},
        **{name: getattr(made, f"_{name}") for name in _options_of(making)},
        **made._common_args,
    )
    again = object.__new__(type(made))
    kept = {name: value for name, value in vars(made).items() if not _is_for_saving(name)}
    vars(again).update(kept)
    super(type(made), again).__init__(dataset, variant)  # its own would call the function
    return again


def _is_for_saving(name: str) -> bool:
    """Whether an attribute keeps what is saved with an object, which no other may share."""
    return name.startswith("_self_")


@functools.cache
def _options_of(making: _Making) -> tuple[str, ...]:
    """The names of what that op is given besides its input and its function."""
    known = {"input_dataset", "other_arguments", making.argument, "name"}
    known |= {"output_types", "output_shapes", "metadata"}  # the common ones
    return tuple(name for name in inspect.signature(making.op).parameters if name not in known)


def captured(tensor: Any, graph: Any) -> Any:
    """The tensor of a FuncGraph that stands for one outside it."""
    return graph.capture(tensor)


def captures_of(graph: Any) -> list[tuple[Any, Any]]:
    """Each tensor outside a FuncGraph, with the one that stands for it."""
    return list(graph.captures)


def body_of(call: Any) -> Any:
    """The graph of the function that an operation calls; None if it cannot be had."""
    return body_named(call.graph, call.get_attr("f").name)


def body_named(graph: Any, name: str) -> Any:
    """The graph of a function that a graph knows; None if it cannot be had."""
    find = getattr(graph, "_get_function", None)
    return None if find is None else getattr(find(name), "graph", None)


def share_function(name: str, graph: Any, other: Any) -> bool:
    """Lets another graph call a function that a graph knows. Returns whether that worked."""
    find = getattr(graph, "_get_function", None)
    add = getattr(other, "_add_function_recursive", None)
    function = None if find is None else find(name)
    if add is None or function is None:
        return False
    add(function)
    return True


def is_stateful(kind: str) -> bool:
    """Whether TensorFlow says that ops of this type have effects, or draw from what they keep."""
    try:
        from tensorflow.python.framework import op_def_registry
    except ImportError:
        return True
    definition = op_def_registry.get(kind)
    return definition is None or definition.is_stateful


def batched(spec: Any, rows: int | None) -> Any:
    """The spec of batches of elements with this spec, as batch() has it."""
    return spec._batch(rows)


def before_return(tensor: Any) -> Any:
    """The result, before the identity that makes a function wait for what must run."""
    operation = tensor.op
    waits = operation.control_inputs
    if operation.type == "Identity" and all(each.type == "NoOp" for each in waits):
        return operation.inputs[0]
    return tensor
