"""Traces a function of a row again as a function of whole columns.

Ops without a rule, and their successors, run row by row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow import internals
from tfrfast.tensorflow.lift.by_row import PACKING, ByRow, by_row
from tfrfast.tensorflow.lift.copying import captured_in, copied_op, needed, origin, results_of
from tfrfast.tensorflow.lift.op_rules import OF_SHARED, RULES, Call, NotVectorisedError, known
from tfrfast.tensorflow.lift.variable import Indices, Lengths, Padding, VariableRows, of_variable
from tfrfast.tensorflow.reasons import RefusedError

_BYTES_OF_A_STRING = 32


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
    by_row: ByRow | None

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
    return Whole(whole, bool(batch.conditions), batch.by_row)


class _Batch:
    """The graph of a batch under construction."""

    def __init__(self, graph: Any, columns: dict[str, Any]) -> None:
        self._graph = graph
        #: The tensors that differ from row to row, and those that all rows share, by the names of a
        #: row's tensors.
        self._columns, self._shared = dict(columns), dict[str, Any]()
        self.conditions: list[Any] = []
        # Ops that run row by row, and the types of those that are themselves a cause.
        self._left, self._causes = set[str](), list[str]()
        self.by_row: ByRow | None = None
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
            self._causes.append(op.type)

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
        self.by_row, made = by_row(self._graph, tensors, left, self._causes)
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
