"""Fills the rows of a batch up to one shape, like padded_batch() of single elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow.lift.variable import VariableRows


@dataclass(frozen=True)
class Padding:
    """The arguments of padded_batch(), by component."""

    #: The shape of each row; -1 is the largest size in the batch.
    shapes: tuple[tuple[int, ...], ...]
    #: The padding values, a tensor for each component.
    values: tuple[Any, ...]

    def arguments(self, spec: Any) -> tuple[Any, Any]:
        """Returns the arguments of padded_batch() for elements with this spec."""
        shapes = [tf.constant(shape, tf.int64) for shape in self.shapes]
        return tf.nest.pack_sequence_as(spec, shapes), tf.nest.pack_sequence_as(spec, self.values)

    def batch_spec(self, spec: Any, rows: int | None) -> Any:
        flat = [
            tf.TensorSpec([rows, *(None if size < 0 else size for size in shape)], each.dtype)
            for shape, each in zip(self.shapes, tf.nest.flatten(spec), strict=True)
        ]
        return tf.nest.pack_sequence_as(spec, flat)

    def fill(self, columns: Sequence[Any], require: Callable[[Any], None]) -> list[Any]:
        """Returns the columns with all rows filled up. Requires that no row is too long."""
        filled = []
        for column, shape, value in zip(columns, self.shapes, self.values, strict=True):
            if isinstance(column, VariableRows):
                if shape[0] >= 0:
                    require(column.lengths <= shape[0])
                column = column.filled(shape[0], value)
            more = [
                0 if size < 0 or size == known else size - known
                for size, known in zip(shape, column.shape[1:], strict=True)
            ]
            if any(more):
                paddings = [[0, 0], *([0, each] for each in more)]
                column = tf.pad(column, paddings, constant_values=value)
            filled.append(column)
        return filled
