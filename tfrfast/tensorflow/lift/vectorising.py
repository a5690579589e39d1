"""Traces a function of a row again as a function of whole columns.

Ops without a rule, and their successors, run row by row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow import internals
from tfrfast.tensorflow.lift.copying import (
    called_in,
    captured_in,
    copied_op,
    cut,
    needed,
    origin,
    results_of,
)
from tfrfast.tensorflow.lift.op_rules import (
    OF_SHARED,
    RULES,
    Call,
    NotVectorisedError,
    is_static_lookup,
    known,
)
from tfrfast.tensorflow.lift.variable import (
    Indices,
    Lengths,
    Padding,
    VariableRows,
    of_variable,
    unpacked,
)
from tfrfast.tensorflow.read.user_functions import CALLING, has_seed, is_random
from tfrfast.tensorflow.reasons import RefusedError

_BYTES_OF_A_STRING = 32
# A failing check is an error like any other.
_WITHOUT_EFFECT = CALLING | {"Assert", "CheckNumerics"}
# These ops pass on lists of tensors, the only variants here.
_PASSING = CALLING | {"StatelessCase", "StatelessIf", "StatelessWhile"}
# These ops make one tensor of a sparse or ragged result, in tf.data's form.
PACKING = frozenset(["RaggedTensorToVariant", "SerializeSparse"])
_HANDLES = (tf.resource.as_datatype_enum, tf.variant.as_datatype_enum)
_DATASETS = ("Dataset", "Iterator", "Optional")


@dataclass(frozen=True)
class Whole:
    """A function of whole columns."""

    #: The traced function. It must run without TensorFlow's optimiser, which would make floats
    #: round differently for a batch than for a row. A variant among its results stands for sparse
    #: or ragged tensors, in tf.data's form for a batch.
    graph: Any
    #: True if the last result is a boolean. If it is false, a row may fail: drop the results and
    #: run the function on each row, so that errors come at their place. Do the same if the part
    #: that runs row by row fails.
    checked: bool
    #: The function of a row, called once for each row of a batch, and the types of the ops without
    #: a rule in it; None if no op runs row by row.
    by_row: Any
    kinds: tuple[str, ...]

    def row_bytes(self, unsized_bytes: int) -> int:
        """Returns the approximate bytes of all values that are made for a row. A result whose size
        differs from row to row counts as `unsized_bytes`.
        """
        made = [e for op in self.graph.get_operations() for e in op.outputs if _has_rows(e)]
        results = self.graph.outputs[: -1 if self.checked else None]
        unsized = sum(not _has_rows(each) for each in results)
        return sum(map(_bytes, made)) + unsized * unsized_bytes


def _has_rows(tensor: Any) -> bool:
    """True for a tensor with an entry of one shape for each row."""
    has_shape = tensor.shape.rank and tensor.shape[1:].is_fully_defined()
    return bool(has_shape and tensor.shape[0] is None and tensor.dtype != tf.variant)


def _bytes(tensor: Any) -> int:
    return math.prod(tensor.shape[1:]) * (tensor.dtype.size or _BYTES_OF_A_STRING)


def vectorised(
    graph: Any,
    specs: Sequence[Any],
    columns_of: Callable[..., dict[str, Any]],
    padding: Padding | None = None,
    selects: bool = False,
) -> Whole:
    """Returns the function of arguments with these specs that makes the results of a row's graph
    for all rows. Raises RefusedError with the op that prevents it.

    `columns_of` makes columns from the arguments, by the names of tensors of the row's graph.
    Without `padding`, rows of different lengths make the results invalid. With `selects`, the last
    result tells which rows are kept.
    """
    for each in graph.outputs:
        is_packed = origin(internals.before_return(each)).op.type in PACKING
        if each.dtype == tf.resource or (each.dtype == tf.variant and not is_packed):
            raise RefusedError(f"tfrfast does not lift a {each.dtype.name}")
    made: list[_Batch] = []

    def run(*arguments: Any) -> list[Any]:
        made[:] = [_Batch(graph, columns_of(*arguments))]
        return made[0].results(padding, selects)

    whole = internals.graph_of(run, tuple(specs))
    (batch,) = made
    kinds = tuple(dict.fromkeys(batch.causes))
    return Whole(whole, bool(batch.conditions), batch.by_row, kinds)


class _Batch:
    """The graph of a batch under construction."""

    def __init__(self, graph: Any, columns: dict[str, Any]) -> None:
        self._graph = graph
        #: The tensors that differ from row to row, and those that all rows share, by the names of a
        #: row's tensors.
        self._columns, self._shared = dict(columns), dict[str, Any]()
        self.conditions: list[Any] = []
        # Ops that run row by row, and the types of those that are themselves a cause.
        self._left, self.causes = set[str](), list[str]()
        self.by_row: Any = None
        self._results = results_of(graph)
        operations = needed(graph, self._results, self._columns)
        here = tf.compat.v1.get_default_graph()
        for name, outer in captured_in(graph, operations).items():
            self._shared[name] = internals.captured(outer, here)
        for op in operations:
            if op.type not in ("NoOp", "Placeholder"):
                self._write_or_leave(op)

    def _write_or_leave(self, op: Any) -> None:
        before = {*(each.op.name for each in op.inputs if each.name not in self._columns)}
        before |= {each.name for each in op.control_inputs}
        if before & self._left:
            self._left.add(op.name)
            return
        try:
            self._write(op)
        except NotVectorisedError:
            self._left.add(op.name)
            self.causes.append(op.type)

    def _write(self, op: Any) -> None:
        names = [each.name for each in op.inputs]
        inputs = [self._columns.get(name, self._shared.get(name)) for name in names]
        per_row = [name in self._columns for name in names]
        if not any(per_row):
            if op.type not in OF_SHARED:
                raise NotVectorisedError
            made = copied_op(op, inputs).outputs
            self._shared.update(zip((each.name for each in op.outputs), made, strict=True))
            return
        if any(each.dtype.is_complex for each in (*op.inputs, *op.outputs)):
            raise NotVectorisedError
        if any(isinstance(each, (Indices, VariableRows)) for each in inputs):
            made = [of_variable(Call(op, inputs, per_row, self.conditions))]
        elif op.type in RULES:
            tensors = [each.tensor if isinstance(each, Lengths) else each for each in inputs]
            made = RULES[op.type](Call(op, tensors, per_row, self.conditions))
        else:
            raise NotVectorisedError
        for output, column in zip(op.outputs, made, strict=True):
            if tf.is_tensor(column) and output.dtype != tf.variant:
                column.set_shape(tf.TensorShape([None]).concatenate(output.shape))
                known(column.shape[1:])
        self._columns.update(zip((each.name for each in op.outputs), made, strict=True))

    def results(self, padding: Padding | None, selects: bool) -> list[Any]:
        left = [each for each in self._results if not self._is_made(each)]
        if left or self._left:
            self._make_by_row(left)
        made: list[Any] = [self._result(each, padding) for each in self._results]
        if padding is not None:
            if not all(isinstance(each, VariableRows) or _has_rows(each) for each in made):
                why = "tfrfast does not pad rows of different shapes that are made one by one"
                raise RefusedError(why)
            made = padding.fill(made, lambda each: self.conditions.append(tf.reduce_all(each)))
        if selects:
            *made, passes = made
            kept = tf.where(passes)[:, 0]
            made = [tf.gather(column, kept) for column in made]
        if self.conditions:
            made.append(tf.reduce_all(tf.stack(self.conditions)))
        return made

    def _is_made(self, tensor: Any) -> bool:
        column = self._columns.get(tensor.name)
        return not isinstance(column, Indices) and (
            column is not None or tensor.name in self._shared
        )

    def _make_by_row(self, left: Sequence[Any]) -> None:
        tensors = {
            name: each.tensor if isinstance(each, Lengths) else each
            for name, each in self._columns.items()
        }
        self.by_row, made = _by_row(self._graph, tensors, left)
        if self._graph.control_outputs:  # so that the function runs
            self.conditions.append(tf.size(next(iter(made.values()))) >= 0)
        self._columns |= made

    def _result(self, tensor: Any, padding: Padding | None) -> Any:
        column = self._columns.get(tensor.name)
        if column is None:
            shared = self._shared[tensor.name]
            shape = tf.constant(known(shared.shape), tf.int32)
            column = tf.broadcast_to(shared, tf.concat([[self._row_count()], shape], 0))
            column.set_shape([None, *shared.shape])
        if isinstance(column, VariableRows) and padding is None:
            self.conditions.append(tf.reduce_all(tf.equal(column.lengths, column.lengths[:1])))
            return column.filled()
        return column.tensor if isinstance(column, Lengths) else column

    def _row_count(self) -> Any:
        column = next(iter(self._columns.values()))
        if isinstance(column, (Indices, Lengths)):
            column = column.rows
        return (
            tf.size(column.splits) - 1 if isinstance(column, VariableRows) else tf.shape(column)[0]
        )


def _by_row(
    graph: Any, columns: Mapping[str, Any], results: Sequence[Any]
) -> tuple[Any, dict[str, Any]]:
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
    return function, dict(zip(names, made, strict=True))


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
