"""Makes one function of several, with called functions inlined."""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow import internals
from tfrfast.tensorflow.recognition import origin

_CALLS = frozenset(["PartitionedCall", "StatefulPartitionedCall"])


def joined(graphs: Sequence[Any], filters: Collection[int] = ()) -> Any:
    """Returns one traced graph of functions, each applied to its predecessor's results.

    The graph has the arguments of the first function and the results of the last, and runs all
    necessary operations. Calls, for example of a @tf.function, are inlined. Branches and loops
    stay. If inlining is not possible, for example because a call is compiled, returns a single
    graph unchanged, and None for several graphs.

    The graphs numbered in `filters` are predicates, which pass their arguments on. If there are
    predicates, the last result is true for a row that all predicates accept.
    """
    is_one = len(graphs) == 1 and not filters
    if is_one and not any(op.type in _CALLS for op in graphs[0].get_operations()):
        return graphs[0]
    try:
        return _traced_again(graphs, filters)
    except _NotCopiedError:
        return graphs[0] if is_one else None


def inlined(graph: Any, given: Sequence[Any]) -> list[Any] | None:
    """Returns the results of a traced function, inlined in the graph that is being traced now.

    None if an operation cannot be copied there.
    """
    here = tf.compat.v1.get_default_graph()
    tensors = {
        inner.name: internals.captured(outer, here)
        for inner, outer in zip(graph.inputs, given, strict=True)
    }
    try:
        return _copy(graph, tensors, here)[0]
    except _NotCopiedError:
        return None


class _NotCopiedError(Exception):
    pass


def _body_of(call: Any) -> Any:
    body = internals.body_of(call)
    if body is None or len(body.inputs) != len(call.inputs) or _is_compiled(call):
        raise _NotCopiedError
    return body


def _is_compiled(op: Any) -> bool:
    """True if XLA compiles the call, which may then round differently than its operations."""
    value = op.node_def.attr.get("_XlaMustCompile")
    return value is not None and bool(value.b)


def _traced_again(graphs: Sequence[Any], filters: Collection[int]) -> Any:
    def run(*given: Any) -> Any:
        here = tf.compat.v1.get_default_graph()
        passes: list[Any] = []
        for number, graph in enumerate(graphs):
            captured = {inner.name: outer for outer, inner in internals.captures_of(graph)}
            names = [tensor.name for tensor in graph.inputs if tensor.name not in captured]
            if len(names) != len(given):
                raise _NotCopiedError
            tensors = dict(zip(names, given, strict=True))
            tensors |= {name: internals.captured(each, here) for name, each in captured.items()}
            made = _copy(graph, tensors, here)[0]
            if number in filters:
                passes += made
            else:
                given = tuple(made)
        return [*given, *([functools.reduce(tf.logical_and, passes)] if passes else [])]

    captured = {inner.name for _, inner in internals.captures_of(graphs[0])}
    arguments = [tensor for tensor in graphs[0].inputs if tensor.name not in captured]
    specs = [tf.TensorSpec(tensor.shape, tensor.dtype) for tensor in arguments]
    return tf.function(run, specs, autograph=False).get_concrete_function().graph


def _copy(graph: Any, tensors: dict[str, Any], here: Any) -> tuple[list[Any], list[Any]]:
    """Copies the operations that a graph runs. `tensors` are the graph's inputs, by name.

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
            if op.type == "DeserializeSparse" and origin(inputs[0]).op.type == "SerializeSparse":
                outputs, copies[op.name] = origin(inputs[0]).op.inputs, []
            elif op.type in _CALLS:
                body = _body_of(op)
                given = zip((tensor.name for tensor in body.inputs), inputs, strict=True)
                outputs, copies[op.name] = _copy(body, dict(given), here)
            else:
                copy = _copy_op(op, inputs, here)
                outputs, copies[op.name] = copy.outputs, [copy]
        for tensor, output in zip(op.outputs, outputs, strict=True):
            output.set_shape(tensor.shape)  # some shapes are known only to Python code
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
    """Returns the names of these operations and of all their predecessors."""
    needed: set[str] = set()
    while ends:
        op = ends.pop()
        if op.name not in needed:
            needed.add(op.name)
            ends += [*(tensor.op for tensor in op.inputs), *op.control_inputs]
    return needed
