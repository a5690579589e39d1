"""Plans the remainder of a function for whole batches.

Ops without a form for batches, and their successors, run row by row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow.history import Refusal
from tfrfast.tensorflow.lifting.by_element import PACKING, ByElement, by_element
from tfrfast.tensorflow.lifting.cutting import needed_of
from tfrfast.tensorflow.lifting.remainder import Remainder
from tfrfast.tensorflow.lifting.rules.node import Node, Rule, Write
from tfrfast.tensorflow.lifting.rules.of_rows import OF_ROWS
from tfrfast.tensorflow.lifting.rules.of_values import (
    ShapesOfValues,
    of_each_value,
    part_made,
    ragged_rows,
    shape_of_rows,
    sparse_rows,
)
from tfrfast.tensorflow.lifting.rules.row_shapes import NotVectorisedError, Shapes
from tfrfast.tensorflow.lifting.rules.table import CONSTANTS, RULES, SHAPES_OF_ROWS
from tfrfast.tensorflow.lifting.variable import Kind, ParsedPart
from tfrfast.tensorflow.lifting.vectorised import Vectorised
from tfrfast.tensorflow.recognition import origin

_BYTES_OF_A_STRING = 32


def vectorised(rest: Remainder, parts: Sequence[ParsedPart] = ()) -> Vectorised | Refusal:
    """Returns a plan to run the remainder of a function on whole batches, or the op that prevents
    it.

    `parts` describes the columns if rows of some columns have different lengths. Ops without a form
    for batches run row by row, if their order and time do not matter.
    """
    for each in rest.outputs:
        is_packed = origin(each).op.type in PACKING
        if each.dtype == tf.resource or (each.dtype == tf.variant and not is_packed):
            return Refusal(f"it returns a {each.dtype.name}")
    return _Planning(rest, parts).planned()


class _Planning:
    """Plans the ops in the order in which they run."""

    def __init__(self, rest: Remainder, parts: Sequence[ParsedPart]) -> None:
        self._rest = rest
        self._left: dict[str, Any] = {}  # ops that run row by row
        # Types of the ops that are themselves a cause, not only their inputs.
        self._causes: list[str] = []
        self._known = list(rest.inputs)
        self._per_row = {each.name for each in rest.inputs}
        self._captured = {inner.name: outer for inner, outer in rest.captures}
        named = zip(rest.inputs, parts, strict=False)
        #: Tensors whose length differs from row to row, and the shapes of sparse rows.
        self._parts = {each.name: part for each, part in named if part.kind != "row"}
        self._shapes = Shapes()
        self._steps: list[tuple[Any, Write]] = []
        self._is_checked, self._row_bytes, self._unsized = False, 0, 0

    def planned(self) -> Vectorised | Refusal:
        rest = self._rest
        _, ops = needed_of(rest.graph, rest.inputs, rest.outputs, rest.must_run)
        self._used = {each.name for op in ops for each in op.inputs}
        self._used |= {each.name for each in rest.outputs}
        for op in ops:
            self._plan_or_leave(op)
        # Rows that are returned as one tensor must have the same length.
        self._is_checked |= any(self._kind(each) == "values" for each in rest.outputs)
        left = self._left or any(self._kind(each) == "indices" for each in rest.outputs)
        part = self._by_element() if left else None
        if isinstance(part, Refusal):
            return part
        return Vectorised(
            self._rest,
            tuple(self._steps),
            frozenset(self._per_row),
            self._shapes,
            self._is_checked,
            self._row_bytes,
            self._unsized,
            part is None or part.has_fixed_shapes,
            part,
        )

    def _kind(self, tensor: Any) -> Kind:
        part = self._parts.get(tensor.name)
        return "row" if part is None else part.kind

    def _differs(self, tensor: Any) -> bool:
        """True if rows have different lengths."""
        return self._kind(tensor) in ("values", "indices")

    def _by_element(self) -> ByElement | Refusal:
        rest = self._rest
        results = [
            each
            for each in rest.outputs
            if each.op.name in self._left or self._kind(each) == "indices"
        ]
        found = by_element(
            rest.graph,
            self._known,
            results,
            [each for each in rest.must_run if each.name in self._left],
            self._causes,
            parts={name: part for name, part in self._parts.items() if part.kind != "shape"},
        )
        if isinstance(found, Refusal):
            return found
        self._per_row.update(found.makes)
        known = [each for each in found.function.outputs if each.shape.is_fully_defined()]
        self._row_bytes += sum(map(self._bytes, known))
        self._unsized += len(found.function.outputs) - len(known)
        return found

    def _plan_or_leave(self, op: Any) -> None:
        before = [each.op for each in op.inputs]
        if any(each.name in self._left for each in (*before, *op.control_inputs)):
            self._left[op.name] = op
            return
        try:
            self._plan(op)
        except NotVectorisedError:
            self._left[op.name] = op
            self._causes.append(op.type)

    def _plan(self, op: Any) -> None:
        if op.type == "NoOp":
            return
        self._shapes.find_out(op)
        per_row = tuple(each.name in self._per_row for each in op.inputs)
        if any(per_row):
            self._plan_for_rows(op, per_row)
        else:
            self._plan_once(op, per_row)

    def _plan_for_rows(self, op: Any, per_row: tuple[bool, ...]) -> None:
        if op.type == "Identity":  # even if the input's shape is unknown
            self._add_rows(op, lambda batch, inputs: inputs, self._parts.get(op.inputs[0].name))
            return
        if any(map(self._differs, op.inputs)):
            self._plan_for_values(op, per_row)
            return
        node = Node(op, per_row, self._shapes, self._captured)
        write = self._write(node)
        self._row_bytes += sum(self._bytes(each) for each in op.outputs if each.name in self._used)
        self._add(op, write)

    def _plan_for_values(self, op: Any, per_row: tuple[bool, ...]) -> None:
        if op.type in OF_ROWS:
            node = Node(op, per_row, ShapesOfValues(self._parts), self._captured)
            write, part = OF_ROWS[op.type](node, self._parts)
            self._is_checked |= node.is_checked
            self._add_rows(op, write, part)
            return
        if op.type in PACKING:
            self._unsized += 1
            packed = sparse_rows if op.type == "SerializeSparse" else ragged_rows
            self._add(op, packed(op, self._parts))
            return
        if op.type in SHAPES_OF_ROWS:
            self._add(op, shape_of_rows(op, self._parts[op.inputs[0].name]))
            return
        part = part_made(op, per_row, self._parts)
        shapes = ShapesOfValues(self._parts | {op.outputs[0].name: part})
        node = Node(op, per_row, shapes, self._captured)
        self._add_rows(op, of_each_value(node, self._write(node), part), part)

    def _add_rows(self, op: Any, write: Write, part: ParsedPart | None) -> None:
        """Adds an op whose output has rows of different lengths, or is one tensor."""
        output = op.outputs[0]
        if part is not None and part.kind == "values" and output.shape.is_fully_defined():
            raise NotVectorisedError("has rows whose length the function fixes")
        self._add(op, write)
        if part is not None:
            self._parts[output.name] = part
            self._unsized += part.kind == "values" and op.type != "Identity"
        elif self._differs(op.inputs[0]):
            self._row_bytes += self._bytes(output)

    def _write(self, node: Node) -> Write:
        op, rule = node.op, _rule(node.op)
        if any(each.dtype.is_complex for each in (*op.inputs, *op.outputs)):
            raise NotVectorisedError("computes with complex numbers")
        write = rule(node)
        self._is_checked |= node.is_checked
        return write

    def _plan_once(self, op: Any, per_row: tuple[bool, ...]) -> None:
        if op.type not in CONSTANTS | SHAPES_OF_ROWS | {"Identity"}:
            node = Node(op, per_row, self._shapes, self._captured)
            _rule(op)(node)
            if node.is_checked:  # the op runs even for a batch without rows
                raise NotVectorisedError("fails on some values")
        types = [output.dtype for output in op.outputs]
        self._steps.append((op, lambda batch, inputs: batch.op(op.type, inputs, types, like=op)))

    def _add(self, op: Any, write: Write) -> None:
        self._steps.append((op, write))
        self._per_row.update(each.name for each in op.outputs)
        self._known += op.outputs

    def _bytes(self, output: Any) -> int:
        size = _BYTES_OF_A_STRING if output.dtype == tf.string else output.dtype.size
        return math.prod(self._shapes.known(output)) * size


def _rule(op: Any) -> Rule:
    rule = RULES.get(op.type)
    if rule is None:
        raise NotVectorisedError("has no form for batches")
    return rule
