"""The rest of a function in a form that takes whole batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow.lifting.by_element import ByElement
from tfrfast.tensorflow.lifting.dependencies import looked_at
from tfrfast.tensorflow.lifting.padding import Padding
from tfrfast.tensorflow.lifting.remainder import Remainder
from tfrfast.tensorflow.lifting.rules.node import BatchGraph, Write
from tfrfast.tensorflow.lifting.rules.row_shapes import Shapes
from tfrfast.tensorflow.lifting.variable import VariableRows


@dataclass(frozen=True)
class Vectorised:
    """The rest of a function, for all rows of a batch.

    Called in a graph, it adds ops to it. They must run as they stand: TensorFlow's optimiser would
    make floats round differently for a batch than for a row.
    """

    rest: Remainder
    #: The ops to add, in order, and how.
    steps: tuple[tuple[Any, Write], ...]
    #: The names of the tensors that differ from row to row.
    per_row: frozenset[str]
    shapes: Shapes
    #: Whether the rows of some batches have to run one by one, because one of them may fail.
    checked: bool
    #: The bytes of all values that are made from a row, with a guess for the length of strings, but
    #: without those of tensors whose size differs from row to row; and how many of these there are.
    row_bytes: int
    unsized: int
    #: Whether all rows have the same shapes, but for those of VariableRows.
    can_be_padded: bool
    #: What runs row by row, after the steps.
    by_element: ByElement | None = None

    def __call__(
        self,
        columns: Sequence[Any],
        row_count: Any = None,
        taken: Any = None,
        padding: Padding | None = None,
    ) -> tuple[list[Any], Any]:
        """Returns the outputs for rows whose columns these are, and whether they count.

        Rows are the first dimension of each column and of each output; where they have different
        lengths, a column is VariableRows. An output that is a variant stands for sparse or ragged
        tensors, in a form that tf.data takes for a batch of them. An output that is an input
        is the very object that was given. Whether the outputs count is None if nothing can fail:
        then they always do. Otherwise it is a boolean. If that is false, one of the rows may fail:
        drop the outputs and run the function on each row, so that errors come where they belong.
        The same has to be done if what runs row by row fails. Without columns, `row_count` is
        needed. With `taken`, a boolean for each row, the others cannot fail, and what is made of
        them does not matter. Without `padding`, rows of different lengths do not count.
        """
        graph, inputs = tf.compat.v1.get_default_graph(), self.rest.inputs
        values = {each.name: column for each, column in zip(inputs, columns, strict=True)}
        values |= {inner.name: outer for inner, outer in self.rest.captures}
        batch = BatchGraph(
            graph,
            lambda: _row_count(inputs, columns) if row_count is None else row_count,
            taken=taken,
        )
        for op, write in self.steps:
            written = write(batch, [values.get(each.name) for each in op.inputs])
            for output, value in zip(op.outputs, written, strict=True):
                values[output.name] = value
                if value is not None and op.type != "Identity" and self._is_column(output, value):
                    value.set_shape([None, *self.shapes.known(output)])
        if self.by_element is not None:
            batch.conditions += self.by_element(values)
        outputs = [self._output(each, values, batch, padding) for each in self.rest.outputs]
        if padding is not None:
            outputs = padding.fill(outputs, batch.require)
        return outputs, batch.is_right() if batch.conditions else None

    def takes(self, given: Any) -> bool:
        """Whether an input is looked at."""
        read = (each for op, _ in self.steps for each in looked_at(op))
        return any(each.name == given.name for each in (*read, *self.rest.outputs))

    def _is_column(self, output: Any, value: Any) -> bool:
        """Whether it is a tensor that has a row for each row."""
        is_one = not isinstance(value, VariableRows) and output.dtype != tf.variant
        return is_one and output.name in self.per_row

    def _output(
        self, output: Any, values: dict[str, Any], batch: BatchGraph, padding: Padding | None
    ) -> Any:
        value = values[output.name]
        if isinstance(value, VariableRows) and padding is None:
            value, is_right = value.padded()
            batch.require(is_right)
        if output.name in self.per_row:
            return value
        repeated = batch.repeated(value, self.shapes.known(output))
        repeated.set_shape([None, *self.shapes.known(output)])
        return repeated


def _row_count(inputs: Sequence[Any], columns: Sequence[Any]) -> Any:
    for each, column in zip(inputs, columns, strict=True):
        if isinstance(column, VariableRows):
            return column.row_count
        if each.shape.is_fully_defined():
            known = column.shape[0]
            return tf.shape(column)[0] if known is None else tf.constant(known)
    return tf.shape(columns[0])[0]
