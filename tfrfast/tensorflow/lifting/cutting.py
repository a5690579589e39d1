"""Cuts a function: the operations after some of its tensors become a function of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow import internals
from tfrfast.tensorflow.history import Refusal
from tfrfast.tensorflow.lifting.remainder import Remainder
from tfrfast.tensorflow.tracing import traced, traced_in_order


@dataclass(frozen=True)
class GivenAs:
    """The arguments of a function in place of the known tensors."""

    specs: list[Any]
    make: Callable[..., Sequence[Any]]


@dataclass(frozen=True)
class _Subgraph:
    """Operations of a graph.

    `begins_with` are the known tensors that the operations and results depend on. `fed` are the
    known tensors among the operations' inputs.
    """

    operations: set[str]
    begins_with: set[str]
    fed: set[str]


def rest_after(graph: Any, known: tuple[Any, ...]) -> Remainder | Refusal:
    """Returns the remainder of a traced graph if the tensors `known` are given.

    Each operation that must run stays, including asserts and prints.
    """
    results = tuple(internals.before_return(tensor) for tensor in graph.outputs)
    for tensor, output in zip(results, graph.outputs, strict=True):
        tensor.set_shape(output.shape)
    given = {tensor.name for tensor in known}
    captures = {inner.name: (inner, outer) for outer, inner in internals.captures_of(graph)}
    part = _part_from(results, graph.control_outputs, {*given, *captures})
    if part is None:
        return Refusal("it needs the record again")
    outside = tuple(pair for name, pair in captures.items() if name in part.begins_with)
    if not all(hasattr(outer, "numpy") for _, outer in outside):
        return Refusal("it uses tensors of another graph")
    return Remainder(graph, known, outside, results, tuple(graph.control_outputs))


def needed_of(
    graph: Any, known: Sequence[Any], results: Sequence[Any], must_run: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """Returns the known tensors and the operations that the results need."""
    captures = {inner.name for _, inner in internals.captures_of(graph)}
    part = _part_from(results, must_run, {*(each.name for each in known), *captures})
    assert part is not None
    used = [each for each in known if each.name in part.begins_with]
    return used, [op for op in graph.get_operations() if op.name in part.operations]


def cut(
    graph: Any,
    known: Sequence[Any],
    results: Sequence[Any],
    must_run: Sequence[Any],
    given_as: GivenAs | None = None,
    replaced: Mapping[str, Any] | None = None,
) -> Any | Refusal:
    """Returns a ConcreteFunction of `known` that returns `results`, and runs the necessary
    operations.

    With `given_as`, it takes other arguments, and makes the known tensors from them. `replaced` has
    ConcreteFunctions by the names of operations. A function returns all outputs of its operation,
    and takes the first inputs.
    """
    given = {tensor.name: place for place, tensor in enumerate(known)}
    captures = {inner.name: outer for outer, inner in internals.captures_of(graph)}
    part = _part_from(results, must_run, {*given, *captures})
    if part is None:
        return Refusal("it needs the record again")
    outside = {name: captures[name] for name in sorted(part.begins_with) if name in captures}
    if not all(hasattr(tensor, "numpy") for tensor in outside.values()):
        return Refusal("it uses tensors of another graph")
    definition = graph.as_graph_def()
    kept = [node for node in definition.node if node.name in part.operations]
    for node in kept:
        node.attr.pop("_class", None)  # `_class` may name a node that is not kept
        if replaced and node.name in replaced:
            _call_instead(node, replaced[node.name])
    del definition.node[:]
    definition.node.extend(kept)

    def run(*arguments: Any) -> list[Any]:
        columns = arguments if given_as is None else given_as.make(*arguments)
        here = tf.compat.v1.get_default_graph()
        for each in (replaced or {}).values():
            each.add_to_graph(here)  # which keeps the function
        tensors = {name: columns[place] for name, place in given.items()}
        tensors |= {name: internals.captured(outer, here) for name, outer in outside.items()}
        made = [tensor.name for tensor in results if tensor.name not in tensors]
        fed = {name: tensors[name] for name in part.fed}
        new = tf.graph_util.import_graph_def(definition, fed, made, "rest")
        tensors |= zip(made, new, strict=True)
        imported = {op.name: op for op in here.get_operations()}  # a look-up by name takes long
        for op in graph.get_operations():
            if op.name in part.operations:
                _copy_shapes(op, imported[f"rest/{op.name}"])
        return [tf.identity(tensors[tensor.name]) for tensor in results]

    specs = [tf.TensorSpec(tensor.shape, tensor.dtype) for tensor in known]
    if given_as is not None:
        specs = given_as.specs
    trace = traced_in_order if must_run else traced
    function = trace(run, tuple(specs), {})
    if len(function.graph.control_outputs) < len(must_run):
        return Refusal("it has operations that must run, and cannot be kept")
    return function


def _call_instead(node: Any, function: Any) -> None:
    """Turns a node into a call of a function with the same outputs."""
    takes, makes = function.inputs, function.outputs
    controls = [each for each in node.input if each.startswith("^")]
    node.input[:] = [*node.input[: len(takes)], *controls]
    node.op = "PartitionedCall"
    node.attr.clear()
    node.attr["f"].func.name = function.name
    node.attr["Tin"].list.type[:] = [each.dtype.as_datatype_enum for each in takes]
    node.attr["Tout"].list.type[:] = [each.dtype.as_datatype_enum for each in makes]


def _copy_shapes(traced: Any, imported: Any) -> None:
    """Copies shapes that only the Python code of an operation knew."""
    for theirs, ours in zip(traced.outputs, imported.outputs, strict=True):
        ours.set_shape(theirs.shape)


def _part_from(results: Sequence[Any], must_run: Any, known: set[str]) -> _Subgraph | None:
    """Returns the part from known tensors to the results; None if the results need other inputs,
    too.
    """
    tensors, operations = list(results), list(must_run)
    part = _Subgraph(set(), set(), set())
    while tensors or operations:
        if tensors:
            tensor = tensors.pop()
            if tensor.name in known:
                part.begins_with.add(tensor.name)
            else:
                operations.append(tensor.op)
            continue
        operation = operations.pop()
        if operation.name in part.operations:
            continue
        if operation.type == "Placeholder":
            return None
        part.operations.add(operation.name)
        tensors += operation.inputs
        part.fed.update(known.intersection(tensor.name for tensor in operation.inputs))
        operations += operation.control_inputs
    return part
