"""Copies operations of a traced function into another graph, in which some tensors are given."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow import internals

_CALLS = frozenset(["PartitionedCall", "StatefulPartitionedCall"])

#: Makes the outputs of an operation from its inputs.
Write = Callable[[Any, list[Any]], Sequence[Any]]


class NotCopiedError(Exception):
    """An operation cannot be in another graph."""


def origin(tensor: Any) -> Any:
    """Returns the tensor before identities."""
    while tensor.op.type == "Identity" and not tensor.op.control_inputs:
        tensor = tensor.op.inputs[0]
    return tensor


def results_of(graph: Any) -> list[Any]:
    """Returns the results of a traced function, before the identities that wait for others."""
    results = [internals.before_return(tensor) for tensor in graph.outputs]
    for tensor, output in zip(results, graph.outputs, strict=True):
        tensor.set_shape(output.shape)
    return results


def needed(graph: Any, results: Sequence[Any], known: Collection[str] = ()) -> list[Any]:
    """Returns the operations, in order, that make the results of the tensors named in `known`, and
    those that must run in any case.
    """
    pending = [each.op for each in results if each.name not in known] + graph.control_outputs
    found: set[str] = set()
    while pending:
        op = pending.pop()
        if op.name not in found:
            found.add(op.name)
            pending += [each.op for each in op.inputs if each.name not in known]
            pending += op.control_inputs
    return [op for op in graph.get_operations() if op.name in found]


def captured_in(graph: Any, operations: Sequence[Any]) -> dict[str, Any]:
    """Returns the outer tensors of the placeholders among the operations, by name."""
    captures = internals.captures_of(graph)
    return {inner.name: outer for outer, inner in captures if inner.op in operations}


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

    def run(*given: Any) -> Any:
        passes: list[Any] = []
        for number, graph in enumerate(graphs):
            made = inlined(graph, [*given, *(outer for outer, _ in internals.captures_of(graph))])
            passes += made if number in filters else []
            given = given if number in filters else tuple(made)
        return [*given, *([functools.reduce(tf.logical_and, passes)] if passes else [])]

    captured = len(internals.captures_of(graphs[0]))
    arguments = graphs[0].inputs[: len(graphs[0].inputs) - captured]
    specs = [tf.TensorSpec(tensor.shape, tensor.dtype) for tensor in arguments]
    try:
        return tf.function(run, specs, autograph=False).get_concrete_function().graph
    except NotCopiedError:
        return graphs[0] if is_one else None


def inlined(graph: Any, given: Sequence[Any]) -> list[Any]:
    """Returns the results of a traced function, inlined in the graph that is being traced now.

    `given` are the function's arguments and captured tensors. Raises NotCopiedError.
    """
    here = tf.compat.v1.get_default_graph()
    if len(given) != len(graph.inputs):
        raise NotCopiedError
    names = [inner.name for inner in graph.inputs]
    tensors = dict(zip(names, (internals.captured(each, here) for each in given), strict=True))
    return copied(graph, tensors)[0]


def imported(graph: Any, given: Sequence[Any]) -> list[Any]:
    """Returns the results of a function for some arguments, in less time than inlined(), but
    without shapes that only Python code knew.
    """
    here, definition = tf.compat.v1.get_default_graph(), graph.as_graph_def()
    given = [*given, *(outer for outer, _ in internals.captures_of(graph))]
    tensors = {
        inner.name: internals.captured(each, here)
        for inner, each in zip(graph.inputs, given, strict=True)
    }
    kept = [node for node in definition.node if f"{node.name}:0" not in tensors]
    del definition.node[:]
    definition.node.extend(kept)
    fed = {f"{name.removesuffix(':0')}:0" for node in kept for name in node.input} & tensors.keys()
    made = [each.name for each in graph.outputs if each.name not in tensors]
    results = tf.graph_util.import_graph_def(
        definition, {each: tensors[each] for each in fed}, made, "columns"
    )
    tensors |= zip(made, results, strict=True)
    return [tensors[each.name] for each in graph.outputs]


def copied(
    graph: Any,
    tensors: dict[str, Any],
    results: Sequence[Any] | None = None,
    instead: Mapping[str, Write] | None = None,
) -> tuple[list[Any], list[Any]]:
    """Copies the operations that make the results of `tensors`, which are given by their names.

    `instead` writes other operations for those of some names. Returns the results, and the copies
    of the operations that must run.
    """
    here = tf.compat.v1.get_default_graph()
    results = results_of(graph) if results is None else results
    copies: dict[str, list[Any]] = {}
    for op in needed(graph, results, tensors):
        inputs = [tensors[tensor.name] for tensor in op.inputs]
        waits = [copy for each in op.control_inputs for copy in copies.get(each.name, [])]
        copies[op.name] = []
        with here.control_dependencies(waits):
            if instead and op.name in instead:
                outputs = instead[op.name](op, inputs)
            elif op.type == "DeserializeSparse" and origin(inputs[0]).op.type == "SerializeSparse":
                outputs = origin(inputs[0]).op.inputs
            elif op.type in _CALLS:
                body = _body_of(op)
                names = (tensor.name for tensor in body.inputs)
                given = dict(zip(names, inputs, strict=True))
                outputs, copies[op.name] = copied(body, given)
            else:
                copy = copied_op(op, inputs)
                outputs, copies[op.name] = copy.outputs, [copy]
        for tensor, output in zip(op.outputs, outputs, strict=True):
            output.set_shape(tensor.shape)  # some shapes are known only to Python code
            tensors[tensor.name] = output
    must_run = [copy for each in graph.control_outputs for copy in copies[each.name]]
    return [tensors[tensor.name] for tensor in results], must_run


def copied_op(op: Any, inputs: Sequence[Any], **attributes: Any) -> Any:
    """Adds an operation like `op` to the graph that is being traced now."""
    here = tf.compat.v1.get_default_graph()
    attrs = {k: v for k, v in op.node_def.attr.items() if not k.startswith("_")} | attributes
    for function in called_in(op.node_def):
        if not internals.share_function(function, op.graph, here):
            raise NotCopiedError
    types = [tensor.dtype for tensor in op.outputs]
    return here.create_op(op.type, list(inputs), types, name=op.name, attrs=attrs)


def called_in(node: Any) -> Iterator[str]:
    """Yields the names of the functions that a node calls."""
    for value in node.attr.values():
        functions = [value.func] if value.HasField("func") else value.list.func
        yield from (each.name for each in functions)


def cut(
    graph: Any,
    known: Sequence[Any],
    results: Sequence[Any],
    specs: Sequence[Any] | None = None,
    make: Callable[..., Sequence[Any]] = lambda *arguments: arguments,
    instead: Mapping[str, Write] | None = None,
) -> Any:
    """Returns a ConcreteFunction that makes `results` from the known tensors, and runs what must
    run.

    Its arguments have the `specs`, and `make` makes the known tensors from them.
    """
    names = [each.name for each in known]
    outside = captured_in(graph, needed(graph, results, names))

    def run(*arguments: Any) -> list[Any]:
        here = tf.compat.v1.get_default_graph()
        tensors = {name: internals.captured(each, here) for name, each in outside.items()}
        tensors |= zip(names, make(*arguments), strict=True)
        return list(map(tf.identity, copied(graph, tensors, results, instead)[0]))

    if specs is None:
        specs = [tf.TensorSpec(tensor.shape, tensor.dtype) for tensor in known]
    trace = internals.traced_in_order if graph.control_outputs else internals.traced
    return trace(run, tuple(specs), {})


def _body_of(call: Any) -> Any:
    body = internals.body_of(call)
    compiled = call.node_def.attr.get("_XlaMustCompile")  # XLA may round differently
    if body is None or len(body.inputs) != len(call.inputs) or (compiled and compiled.b):
        raise NotCopiedError
    return body
