"""The remainder of a function in a form for whole batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow.lifting.by_element import ByElement
from tfrfast.tensorflow.lifting.padding import Padding
from tfrfast.tensorflow.lifting.remainder import Remainder
from tfrfast.tensorflow.lifting.rules.node import BatchGraph, Write
from tfrfast.tensorflow.lifting.rules.row_shapes import Shapes
from tfrfast.tensorflow.lifting.variable import VariableRows


@dataclass(frozen=True)
class Vectorised:
    """The remainder of a function, for all rows of a batch.

    A call in a graph adds ops to the graph. The ops must run without TensorFlow's optimiser, which
    would make floats round differently for a batch than for a row.
    """

    rest: Remainder
    #: The ops to add, in order, and their rules.
    steps: tuple[tuple[Any, Write], ...]
    #: The names of the tensors that differ from row to row.
    per_row: frozenset[str]
    shapes: Shapes
    #: True if the rows of some batches must run one by one, because a row may fail.
    checked: bool
    #: The bytes of all values that a row makes, with a guess for the length of strings, without
    #: tensors whose size differs from row to row; and the number of these tensors.
    row_bytes: int
    unsized: int
    #: True if all rows have the same shapes, apart from VariableRows.
    can_be_padded: bool
    #: The part that runs row by row, after the steps.
    by_element: ByElement | None = None

    def __call__(
        self, columns: Sequence[Any], padding: Padding | None = None
    ) -> tuple[list[Any], Any]:
        """Returns the outputs for the rows of these columns, and a boolean that is false for
        invalid outputs.

        Rows are the first dimension of each column and of each output. A column whose rows have
        different lengths is VariableRows. A variant output stands for sparse or ragged tensors, in
        tf.data's form for a batch. An output that is an input is the same object. The boolean is
        None if nothing can fail, and the outputs are always valid. If the boolean is false, a row
        may fail: drop the outputs and run the function on each row, so that errors come at their
        place. Do the same if the part that runs row by row fails. Without `padding`, rows of
        different lengths make the outputs invalid.
        """
        graph, inputs = tf.compat.v1.get_default_graph(), self.rest.inputs
        values = {each.name: column for each, column in zip(inputs, columns, strict=True)}
        values |= {inner.name: outer for inner, outer in self.rest.captures}
        batch = BatchGraph(graph, lambda: _row_count(inputs, columns))
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

    def _is_column(self, output: Any, value: Any) -> bool:
        """True for a tensor with an entry for each row."""
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
