"""An op of a row's graph, for rules; and the batch graph that rules write."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tensorflow as tf

from tfrfast.tensorflow.lifting.rules.row_shapes import NotVectorisedError, Shapes


@dataclass
class Node:
    """An op of the graph of a row."""

    op: Any
    #: True for inputs that differ from row to row. Other inputs are the same for all rows.
    per_row: tuple[bool, ...]
    shapes: Shapes
    #: Tensors outside the graph for inputs that are placeholders, by the inputs' names.
    captured: dict[str, Any]
    #: True if the batch has a condition.
    is_checked: bool = False

    def can_fail(self) -> None:
        """Declares that the op fails on some values.

        The written ops must not fail: they require that no such value occurs, and still compute
        some result for such values.
        """
        self.is_checked = True

    def attr(self, name: str) -> Any:
        return self.op.get_attr(name)

    def dtype(self, number: int = 0) -> Any:
        return self.op.inputs[number].dtype

    def rank(self, number: int) -> int:
        return len(self.shape(number))

    def shape(self, number: int) -> list[int]:
        """The input's shape in a row."""
        return self.shapes.known(self.op.inputs[number])

    def output_shape(self, number: int = 0) -> list[int]:
        return self.shapes.known(self.op.outputs[number])

    def constant(self, number: int, what: str) -> Any:
        """Returns the value of an input that is the same for all rows and known before a run."""
        value = None if self.per_row[number] else tf.get_static_value(self.op.inputs[number])
        if value is None:
            raise NotVectorisedError(f"takes {what} that is not a constant")
        return np.asarray(value)

    def is_only_per_row(self, *numbers: int) -> None:
        """Refuses the op if other inputs differ from row to row."""
        if any(each and number not in numbers for number, each in enumerate(self.per_row)):
            raise NotVectorisedError("takes an option that differs from row to row")


@dataclass
class BatchGraph:
    """The graph under construction."""

    graph: Any
    count_rows: Callable[[], Any]
    #: Booleans. If one is false, the batch is invalid.
    conditions: list[Any] = field(default_factory=list)

    @functools.cached_property
    def row_count(self) -> Any:
        return self.count_rows()

    def require(self, condition: Any) -> None:
        """Makes the batch valid only if all these booleans are true."""
        self.conditions.append(tf.reduce_all(condition))

    def is_right(self) -> Any:
        return tf.reduce_all(tf.stack(self.conditions))

    def op(
        self,
        kind: str,
        inputs: Sequence[Any],
        output_types: Sequence[Any],
        like: Any = None,
        **attributes: Any,
    ) -> list[Any]:
        """Adds an op. Attributes that are not given come from the op `like`."""
        attrs = {} if like is None else dict(like.node_def.attr)
        attrs = {name: value for name, value in attrs.items() if not name.startswith("_")}
        attrs.update({name: _attr_value(value) for name, value in attributes.items()})
        added = self.graph.create_op(kind, list(inputs), list(output_types), attrs=attrs)
        return list(added.outputs)

    def copy(self, node: Node, inputs: Sequence[Any], **attributes: Any) -> list[Any]:
        """Adds the op of a row, with these inputs."""
        types = [output.dtype for output in node.op.outputs]
        return self.op(node.op.type, inputs, types, like=node.op, **attributes)

    def reshape(self, tensor: Any, row_shape: Sequence[int]) -> Any:
        """Returns the same values of each row in another shape."""
        if 0 in row_shape:
            shape = tf.concat([[self.row_count], np.asarray(row_shape, np.int32)], 0)
        else:
            shape = np.asarray([-1, *row_shape], np.int32)
        return tf.reshape(tensor, shape)

    def widen(self, tensor: Any, row_shape: Sequence[int], rank: int) -> Any:
        """Adds leading dimensions to each row, so that rows stay aligned in broadcasts."""
        if len(row_shape) == rank:
            return tensor
        return self.reshape(tensor, [1] * (rank - len(row_shape)) + list(row_shape))

    def repeated(self, tensor: Any, row_shape: Sequence[int]) -> Any:
        """Repeats a value of all rows once for each row, broadcast to `row_shape`."""
        shape = tf.concat([[self.row_count], np.asarray(row_shape, np.int32)], 0)
        return tf.broadcast_to(tensor, shape)


#: Writes a node's op for a batch: given the inputs, returns the outputs.
Write = Callable[[BatchGraph, list[Any]], list[Any]]
#: The rule of an op for all rows of a batch. Raises NotVectorisedError.
Rule = Callable[[Node], Write]


def _attr_value(value: Any) -> Any:
    if isinstance(value, bool):
        return tf.compat.v1.AttrValue(b=value)
    if isinstance(value, int):
        return tf.compat.v1.AttrValue(i=value)
    if isinstance(value, bytes):
        return tf.compat.v1.AttrValue(s=value)
    if isinstance(value, tf.DType):
        return tf.compat.v1.AttrValue(type=value.as_datatype_enum)
    return value
