"""Runs pure ops without a form for whole batches row by row on decoded columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow import internals
from tfrfast.tensorflow.history import Refusal
from tfrfast.tensorflow.lifting.cutting import cut, needed_of
from tfrfast.tensorflow.lifting.row_arguments import RowArguments, row_arguments
from tfrfast.tensorflow.lifting.rules.lookups import is_static_lookup
from tfrfast.tensorflow.lifting.variable import ParsedPart

# Effects are visible in the functions of these ops.
_CALLING = frozenset(["Case", "If", "PartitionedCall", "StatefulPartitionedCall", "While"])
# A failing check is an error like any other.
_WITHOUT_EFFECT = _CALLING | {"Assert", "CheckNumerics"}
# These ops pass on lists of tensors, the only variants here.
_PASSING = _CALLING | {"StatelessCase", "StatelessIf", "StatelessWhile"}
# These ops make one tensor of a sparse or ragged result, in tf.data's form.
PACKING = frozenset(["RaggedTensorToVariant", "SerializeSparse"])
_HANDLES = (tf.resource.as_datatype_enum, tf.variant.as_datatype_enum)
_DATASETS = ("Dataset", "Iterator", "Optional")

#: Returns the nodes of each function that a graph calls.
_Library = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class ByElement:
    """A function of a row, called once for each row of a batch."""

    function: Any
    #: The arguments of each row, and the names of the result tensors.
    takes: RowArguments
    makes: tuple[str, ...]
    #: True if the function must run even if its results are not needed.
    must_run: bool
    #: The types of the ops that run row by row.
    kinds: tuple[str, ...]

    @property
    def has_fixed_shapes(self) -> bool:
        """True if all rows are known to have the same shapes."""
        return all(each.shape.is_fully_defined() for each in self.function.outputs)

    def __call__(self, values: dict[str, Any]) -> list[Any]:
        """Adds the results of all rows to the values. Fails if the function fails for a row.

        Returns booleans that are true. Use them, so that the function runs.
        """
        outputs = self.function.outputs
        made = tf.raw_ops.MapDefun(
            arguments=self.takes.of_each_row(values),
            captured_inputs=[*self.takes.of_all_rows(values), *self.function.captured_inputs],
            output_types=[output.dtype for output in outputs],
            output_shapes=[output.shape for output in outputs],
            f=self.function,
        )
        for column, output in zip(made, outputs, strict=True):
            column.set_shape(tf.TensorShape([None]).concatenate(output.shape))
        values.update(zip(self.makes, made, strict=True))
        return [tf.size(made[0]) >= 0] if self.must_run else []


def by_element(
    graph: Any,
    known: Sequence[Any],
    results: Sequence[Any],
    must_run: Sequence[Any],
    kinds: Sequence[str],
    parts: Mapping[str, ParsedPart] | None = None,
) -> ByElement | Refusal:
    """Returns a function of a row that makes `results` of `known`, the tensors that differ from row
    to row, and runs the necessary operations.

    `parts` describes tensors whose rows have different lengths. TensorFlow makes the rows in any
    order, several at once.
    """
    used, operations = needed_of(graph, known, results, must_run)
    captures = {inner.name: outer for outer, inner in internals.captures_of(graph)}
    functions = graph.as_graph_def().library.function
    library = {each.signature.name: each.node_def for each in functions}
    for op in operations:
        why = _why_not(op, captures, library)
        if why is not None:
            return Refusal(f"the op {op.type} ({op.name}) {why}")
    takes = used or list(known[:1])
    makes = {each.name: each for each in results or takes[:1]}
    arguments = row_arguments(takes, parts or {})
    given = arguments.given_as()
    function = cut(graph, takes, list(makes.values()), must_run, given)
    if isinstance(function, Refusal):
        return function
    return ByElement(
        function,
        arguments,
        tuple(makes),
        bool(must_run),
        tuple(dict.fromkeys(kinds)),
    )


def _why_not(op: Any, captures: dict[str, Any], library: _Library) -> str | None:
    """Returns the reason why an op may not run in any order, or ahead of the requested row."""
    if op.type == "LookupTableFindV2":
        if is_static_lookup(op, captures.get(op.inputs[0].name)):
            return None
        return "looks into a table that may change between two rows"
    if op.type == "ReadVariableOp":
        return "reads a variable, which may change between two rows"
    return _why_not_node(op.node_def, library)


def _handles_lists(kind: str) -> bool:
    """True if an op keeps tensors in a list, like tf.map_fn, or may pass such a list on."""
    return kind.startswith(("TensorList", "EmptyTensorList")) or kind in _PASSING


def _why_not_node(node: Any, library: _Library) -> str | None:
    values = node.attr.values()
    types = {kind for value in values for kind in (value.type, *value.list.type)}
    has_handles = not types.isdisjoint(_HANDLES) and node.op not in PACKING | {"Identity"}
    is_of_lists = tf.resource.as_datatype_enum not in types and _handles_lists(node.op)
    if any(word in node.op for word in _DATASETS) or (has_handles and not is_of_lists):
        return "handles datasets, variables or tables"
    if {"seed", "seed2"} <= node.attr.keys() and internals.is_stateful(node.op):
        # Without a seed, rows may draw their numbers in any order.
        if node.attr["seed"].i or node.attr["seed2"].i:
            return "draws random numbers from a seed, in the order of the records"
    elif node.op not in _WITHOUT_EFFECT and internals.is_stateful(node.op):
        return "must run for each record, in their order"
    for value in values:
        for function in (*([value.func] if value.HasField("func") else ()), *value.list.func):
            for each in library.get(function.name, ()):
                why = _why_not_node(each, library)
                if why is not None:
                    return f"calls the op {each.op}, which {why}"
    return None
