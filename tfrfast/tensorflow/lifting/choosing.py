"""tf.cond on whole batches: both branches for all rows, and what each row chooses of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow.history import Refusal
from tfrfast.tensorflow.lifting import private
from tfrfast.tensorflow.lifting.rest import Rest
from tfrfast.tensorflow.lifting.rules.node import Batch, Node, Write
from tfrfast.tensorflow.lifting.rules.row_shapes import NotVectorisedError
from tfrfast.tensorflow.lifting.rules.table import REASONS
from tfrfast.tensorflow.lifting.vectorised import Vectorised

_BRANCHES = ("then_branch", "else_branch")


def chosen(node: Node, traced: Any, plan: Callable[[Rest], Vectorised | Refusal]) -> Write:
    """What writes a choice, if neither branch can fail: not even for rows that do not take it."""
    op = node.op
    handles = {tf.resource, tf.variant}
    if op.inputs[0].dtype != tf.bool or node.rank(0) or not node.per_row[0]:
        raise NotVectorisedError(REASONS[op.type])
    if any(each.dtype in handles for each in (*op.inputs, *op.outputs)):
        raise NotVectorisedError(REASONS[op.type])
    shapes = [node.output_shape(number) for number in range(len(op.outputs))]
    given = [node.shape(number) for number in range(1, len(op.inputs))]
    branches = []
    for name in _BRANCHES:
        body = private.body_named(traced, op.get_attr(name).name)
        if body is None or len(body.inputs) != len(given) or body.control_outputs:
            raise NotVectorisedError(REASONS[op.type])
        branch = plan(Rest(body, tuple(body.inputs), (), tuple(body.outputs), ()))
        if isinstance(branch, Refusal):
            raise NotVectorisedError(f"{REASONS[op.type]}; {branch.why}")
        branches.append(branch)

    def write(batch: Batch, inputs: list[Any]) -> list[Any]:
        columns = [
            each if is_per_row else batch.repeated(each, shape)
            for each, shape, is_per_row in zip(inputs[1:], given, node.per_row[1:], strict=True)
        ]
        made = [branch(columns, batch.row_count)[0] for branch in branches]
        return [
            tf.where(batch.widen(inputs[0], [], len(shape)), one, other)
            for one, other, shape in zip(*made, shapes, strict=True)
        ]

    return write
