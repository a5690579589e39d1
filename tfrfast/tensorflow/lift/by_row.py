"""Runs pure ops without a rule row by row on decoded columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow import internals
from tfrfast.tensorflow.lift.copying import called_in, cut, needed
from tfrfast.tensorflow.lift.op_rules import is_static_lookup
from tfrfast.tensorflow.lift.variable import Indices, VariableRows, unpacked
from tfrfast.tensorflow.read.user_functions import CALLING, has_seed, is_random
from tfrfast.tensorflow.reasons import RefusedError

# A failing check is an error like any other.
_WITHOUT_EFFECT = CALLING | {"Assert", "CheckNumerics"}
# These ops pass on lists of tensors, the only variants here.
_PASSING = CALLING | {"StatelessCase", "StatelessIf", "StatelessWhile"}
# These ops make one tensor of a sparse or ragged result, in tf.data's form.
PACKING = frozenset(["RaggedTensorToVariant", "SerializeSparse"])
_HANDLES = (tf.resource.as_datatype_enum, tf.variant.as_datatype_enum)
_DATASETS = ("Dataset", "Iterator", "Optional")


@dataclass(frozen=True)
class ByRow:
    """A function of a row, called once for each row of a batch."""

    function: Any
    #: The types of the ops that run row by row.
    kinds: tuple[str, ...]


def by_row(
    graph: Any, columns: Mapping[str, Any], results: Sequence[Any], kinds: Sequence[str]
) -> tuple[ByRow, dict[str, Any]]:
    """Calls a function for each row that makes `results`, and runs what must run. The call fails if
    the function fails for a row.

    `columns` are the tensors that are known for all rows, by their names in the row's graph.
    Returns the function, and the results of all rows by name. TensorFlow makes the rows in any
    order, several at once. Raises RefusedError.
    """
    operations = needed(graph, results, columns)
    functions = graph.as_graph_def().library.function
    library = {each.signature.name: each.node_def for each in functions}
    for op in operations:
        why = _why_not(op, library)
        if why:
            raise RefusedError(f"the op {op.type} ({op.name}) {why}")
    used = {each.name: each for op in operations for each in op.inputs if each.name in columns}
    used |= {each.name: each for each in results if each.name in columns}
    if not used:
        first = next(iter(columns))
        used = {first: graph.get_tensor_by_name(first)}
    taken = [columns[name] for name in used]
    arguments = list(map(_argument, taken))
    makes = list(results) or list(used.values())[:1]
    specs = [tf.TensorSpec(each.shape[1:], each.dtype) for each in arguments]
    function = cut(
        graph, list(used.values()), makes, specs, lambda *row: list(map(_of_a_row, row, taken))
    )
    outputs = function.outputs
    made = tf.raw_ops.MapDefun(
        arguments=arguments,
        captured_inputs=function.captured_inputs,
        output_types=[output.dtype for output in outputs],
        output_shapes=[output.shape for output in outputs],
        f=function,
    )
    for column, output in zip(made, outputs, strict=True):
        column.set_shape(tf.TensorShape([None]).concatenate(output.shape))
    names = (each.name for each in makes)
    return ByRow(function, tuple(dict.fromkeys(kinds))), dict(zip(names, made, strict=True))


def _argument(column: Any) -> Any:
    """Returns a column as a tensor with an entry for each row."""
    if isinstance(column, Indices):
        return column.rows.lengths
    return column.packed() if isinstance(column, VariableRows) else column


def _of_a_row(argument: Any, column: Any) -> Any:
    """Returns the tensor of a row from its entry."""
    if isinstance(column, Indices):
        return tf.range(argument)[:, tf.newaxis]
    return unpacked(argument, column.values.dtype) if isinstance(column, VariableRows) else argument


def _why_not(op: Any, library: Mapping[str, Sequence[Any]]) -> str:
    """Returns the reason why an op may not run in any order, or ahead of the requested row."""
    if op.type == "LookupTableFindV2":
        is_static = is_static_lookup(op, op.inputs[0])
        return "" if is_static else "looks into a table that may change between two rows"
    if op.type == "ReadVariableOp":
        return "reads a variable, which may change between two rows"
    return "" if op.type == "Placeholder" else _why_not_node(op.node_def, library)


def _why_not_node(node: Any, library: Mapping[str, Sequence[Any]]) -> str:
    types = {kind for value in node.attr.values() for kind in (value.type, *value.list.type)}
    has_handles = not types.isdisjoint(_HANDLES) and node.op not in PACKING | {"Identity"}
    # Ops of tf.map_fn keep tensors in a list, and other ops pass such a list on.
    is_of_lists = node.op.startswith(("TensorList", "EmptyTensorList")) or node.op in _PASSING
    is_of_lists = is_of_lists and tf.resource.as_datatype_enum not in types
    if any(word in node.op for word in _DATASETS) or (has_handles and not is_of_lists):
        return "handles datasets, variables or tables, which tfrfast does not lift"
    if is_random(node):
        # Without a seed, rows may draw their numbers in any order.
        if has_seed(node):
            return "draws random numbers from a seed, in the order of the records"
    elif node.op not in _WITHOUT_EFFECT and internals.is_stateful(node.op):
        return "must run for each record, in their order"
    for name in called_in(node):
        for each in library.get(name, ()):
            why = _why_not_node(each, library)
            if why:
                return f"calls the op {each.op}, which {why}"
    return ""
