"""Features with any number of values in each row: their values, where rows begin, and padding."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import tensorflow as tf

from tfrfast.tensorflow.lift.op_rules import OF_EACH_VALUE, Call, NotVectorisedError, known


@dataclass(frozen=True)
class VariableRows:
    """A column whose rows have different lengths."""

    #: The values of all rows, along the first dimension.
    values: Any
    #: The beginning of each row, and the end of the last row. Columns that share this tensor have
    #: rows of equal lengths.
    splits: Any

    @functools.cached_property
    def begins(self) -> Any:
        return self.splits[:-1]

    @functools.cached_property
    def ends(self) -> Any:
        return self.splits[1:]

    @functools.cached_property
    def lengths(self) -> Any:
        return self.ends - self.begins

    def between(self, begin: int, end: int | None) -> VariableRows:
        """Returns the existing values from one place of each row to another."""
        starts = self.begins if begin == 0 else self.begins + _place(begin, self.lengths)
        ends = self.ends if end is None else self.begins + _place(end, self.lengths)
        # A trace of tf.repeat() takes 11 ms.
        splits, places = tf.raw_ops.RaggedRange(
            starts=starts,
            limits=tf.maximum(starts, ends),
            deltas=tf.constant(1, tf.int64),
            Tsplits=tf.int64,
        )
        return VariableRows(tf.gather(self.values, places), splits)

    def filled(self, length: int = -1, filling: Any = None) -> Any:
        """Returns a tensor of all rows with so many values each; -1: as many as the longest has."""
        return tf.raw_ops.RaggedTensorToTensor(
            shape=tf.constant([-1, length], tf.int64),
            values=self.values,
            default_value=tf.zeros([], self.values.dtype) if filling is None else filling,
            row_partition_tensors=[self.splits],
            row_partition_types=["ROW_SPLITS"],
        )

    def packed(self) -> Any:
        """Returns tf.data's form of the rows as ragged tensors, an entry for each row."""
        return tf.raw_ops.RaggedTensorToVariant(
            rt_nested_splits=[self.splits], rt_dense_values=self.values, batched_input=True
        )


def unpacked(row: Any, dtype: Any) -> Any:
    """Returns the values of a row that is packed."""
    found = tf.raw_ops.RaggedTensorFromVariant(
        encoded_ragged=row,
        input_ragged_rank=0,
        output_ragged_rank=0,
        Tvalues=dtype,
        Tsplits=tf.int64,
    )
    found.output_dense_values.set_shape([None])
    return found.output_dense_values


class Indices(NamedTuple):
    """The indices, [[0], [1], ...], of each row's values in a sparse tensor."""

    rows: VariableRows


class Lengths(NamedTuple):
    """The shape of each row as a sparse tensor."""

    rows: VariableRows

    @property
    def tensor(self) -> Any:
        return tf.expand_dims(self.rows.lengths, 1)


def _place(place: int, lengths: Any) -> Any:
    """Returns the place of a slice's bound in rows of these lengths."""
    bound = tf.constant(place, tf.int64)
    return tf.minimum(bound, lengths) if place >= 0 else tf.maximum(lengths + bound, 0)


def of_variable(call: Call) -> Any:
    """Returns the result of an op that takes VariableRows or Indices. Raises NotVectorisedError."""
    rule = _OF_ROWS.get(call.op.type, _each_value)
    made = rule(call)
    if isinstance(made, VariableRows) and call.op.outputs[0].shape.is_fully_defined():
        raise NotVectorisedError  # the function fixes the length of rows
    return made


def _each_value(call: Call) -> VariableRows:
    """Treats each value as another op treats a row."""
    rule, columns = OF_EACH_VALUE.get(call.op.type), [each for each in call.inputs if _varies(each)]
    others = [each for each in call.inputs if not _varies(each)]
    if (
        rule is None
        or not all(each.splits is columns[0].splits for each in columns)
        or sum(call.per_row) > len(columns)
        or any(each.shape.rank != 0 for each in others)
    ):
        raise NotVectorisedError
    inputs = [each.values if _varies(each) else each for each in call.inputs]
    (made,) = rule(Call(call.op, inputs, call.per_row, call.conditions))
    made.set_shape([None])
    return VariableRows(made, columns[0].splits)


def _varies(value: Any) -> bool:
    return isinstance(value, VariableRows)


def _rows_of(call: Call) -> VariableRows:
    call.allow_only(0)
    if not _varies(call.inputs[0]):
        raise NotVectorisedError
    rows: VariableRows = call.inputs[0]
    return rows


def _reshape(call: Call) -> Any:
    """Gives all rows one shape. A row with another number of values is an error."""
    rows, shape = _rows_of(call), known(call.op.outputs[0].shape)
    call.require(tf.equal(rows.lengths, math.prod(shape)))
    rows_and_shape = [tf.size(rows.splits) - 1, *shape] if 0 in shape else [-1, *shape]
    return tf.reshape(rows.filled(math.prod(shape)), rows_and_shape)


def _slice(call: Call) -> VariableRows:
    """Takes consecutive values of each row."""
    rows, (begin, end, step) = _rows_of(call), (call.constant(number) for number in (1, 2, 3))
    masks = ("ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
    if begin.shape != (1,) or int(step[0]) != 1 or any(map(call.op.get_attr, masks)):
        raise NotVectorisedError
    first = 0 if call.op.get_attr("begin_mask") else int(begin[0])
    return rows.between(first, None if call.op.get_attr("end_mask") else int(end[0]))


def _size(call: Call) -> Any:
    return tf.cast(_rows_of(call).lengths, call.op.outputs[0].dtype)


def _sparse_parts(call: Call, indices: int, values: int, shape: int) -> VariableRows:
    """Returns the values of a sparse tensor: those of a row stand one after the other."""
    of_indices, rows, lengths = (call.inputs[number] for number in (indices, values, shape))
    if (
        not (isinstance(of_indices, Indices) and _varies(rows) and isinstance(lengths, Lengths))
        or not of_indices.rows.splits is rows.splits is lengths.rows.splits
    ):
        raise NotVectorisedError
    return rows


def _packed_sparse(call: Call) -> Any:
    """Returns tf.data's form of the rows as a sparse tensor."""
    rows = _sparse_parts(call, 0, 1, 2)
    sparse = tf.RaggedTensor.from_row_splits(rows.values, rows.splits, validate=False).to_sparse()
    return tf.raw_ops.SerializeSparse(
        sparse_indices=sparse.indices,
        sparse_values=sparse.values,
        sparse_shape=sparse.dense_shape,
        out_type=tf.variant,
    )


def _packed_ragged(call: Call) -> Any:
    if len(call.inputs) > 1:
        raise NotVectorisedError
    return _rows_of(call).packed()


#: Ops that take or make all values of a row.
_OF_ROWS: dict[str, Callable[[Call], Any]] = {
    "Identity": lambda call: call.inputs[0],
    "RaggedTensorToVariant": _packed_ragged,
    "Reshape": _reshape,
    "SerializeSparse": _packed_sparse,
    "Shape": lambda call: tf.expand_dims(_size(call), 1),
    "Size": _size,
    "SparseToDense": lambda call: _sparse_parts(call, 0, 2, 1),
    "StridedSlice": _slice,
}


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
