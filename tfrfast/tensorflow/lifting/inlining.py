"""Puts the functions that a function calls in the places where it calls them."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrfast.tensorflow.lifting import internals

_CALLS = frozenset(["PartitionedCall", "StatefulPartitionedCall"])


def without_calls(graph: Any) -> Any:
    """A traced graph whose calls are replaced by what they do, such as those of a @tf.function.

    It has the same arguments, and what must run still does. Branches and loops stay as they are.
    Where that is not possible, a call that is compiled for example, the graph that was given is
    returned.
    """
    pending, has_calls = [graph], False
    while pending:
        for op in pending.pop().get_operations():
            if op.type in _CALLS:
                body = internals.body_of(op)
                if body is None or len(body.inputs) != len(op.inputs) or _is_compiled(op):
                    return graph
                pending.append(body)
                has_calls = True
    if not has_calls:
        return graph
    try:
        return _traced_again(graph)
    except _NotCopiedError:
        return graph


class _NotCopiedError(Exception):
    pass


def _is_compiled(op: Any) -> bool:
    """Whether XLA compiles the call, which may then round otherwise than its operations."""
    value = op.node_def.attr.get("_XlaMustCompile")
    return value is not None and bool(value.b)


def _traced_again(graph: Any) -> Any:
    captures = {inner.name: outer for outer, inner in internals.captures_of(graph)}
    arguments = [tensor for tensor in graph.inputs if tensor.name not in captures]

    def run(*given: Any) -> list[Any]:
        here = tf.compat.v1.get_default_graph()
        tensors = {own.name: tensor for own, tensor in zip(arguments, given, strict=True)}
        tensors |= {name: internals.captured(outer, here) for name, outer in captures.items()}
        return _copy(graph, tensors, here)[0]

    specs = [tf.TensorSpec(tensor.shape, tensor.dtype) for tensor in arguments]
    return tf.function(run, specs, autograph=False).get_concrete_function().graph


def _copy(graph: Any, tensors: dict[str, Any], here: Any) -> tuple[list[Any], list[Any]]:
    """Copies the operations that a graph runs. `tensors` are its inputs, by their names.

    Returns the graph's outputs, and the operations that must run.
    """
    results = [internals.before_return(tensor) for tensor in graph.outputs]
    needed = _needed([*(tensor.op for tensor in results), *graph.control_outputs])
    copies: dict[str, list[Any]] = {}
    for op in graph.get_operations():
        if op.name not in needed or (op.outputs and op.outputs[0].name in tensors):
            continue
        inputs = [tensors[tensor.name] for tensor in op.inputs]
        waits = [copy for each in op.control_inputs for copy in copies.get(each.name, [])]
        with here.control_dependencies(waits):
            if op.type in _CALLS:
                body = internals.body_of(op)
                given = zip((tensor.name for tensor in body.inputs), inputs, strict=True)
                outputs, copies[op.name] = _copy(body, dict(given), here)
            else:
                copy = _copy_op(op, inputs, here)
                outputs, copies[op.name] = copy.outputs, [copy]
        for tensor, output in zip(op.outputs, outputs, strict=True):
            output.set_shape(tensor.shape)  # some are known only to Python code
            tensors[tensor.name] = output
    must_run = [copy for each in graph.control_outputs for copy in copies[each.name]]
    return [tensors[tensor.name] for tensor in results], must_run


def _copy_op(op: Any, inputs: list[Any], here: Any) -> Any:
    attributes = op.node_def.attr.items()
    kept = {name: value for name, value in attributes if not name.startswith("_")}
    for value in kept.values():
        for function in (*([value.func] if value.HasField("func") else ()), *value.list.func):
            if not internals.share_function(function.name, op.graph, here):
                raise _NotCopiedError
    types = [tensor.dtype for tensor in op.outputs]
    return here.create_op(op.type, inputs, types, name=op.name, attrs=kept)


def _needed(ends: list[Any]) -> set[str]:
    """The names of these operations and of all that run before them."""
    needed: set[str] = set()
    while ends:
        op = ends.pop()
        if op.name not in needed:
            needed.add(op.name)
            ends += [*(tensor.op for tensor in op.inputs), *op.control_inputs]
    return needed
