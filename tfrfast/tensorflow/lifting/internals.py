"""What TensorFlow tells of a map function only under private names.

Where a name is missing, nothing is lifted, and `tfr.explain` says so.
"""

from __future__ import annotations

from typing import Any


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
