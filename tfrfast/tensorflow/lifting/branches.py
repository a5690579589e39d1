"""tf.cond on whole batches: both branches run for all rows, and each row chooses a result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow import internals
from tfrfast.tensorflow.history import Refusal
from tfrfast.tensorflow.lifting.remainder import Remainder
from tfrfast.tensorflow.lifting.rules.node import BatchGraph, Node, Write
from tfrfast.tensorflow.lifting.rules.row_shapes import NotVectorisedError
from tfrfast.tensorflow.lifting.rules.table import REASONS
from tfrfast.tensorflow.lifting.vectorised import Vectorised

#: An If may have effects; only asserts are allowed.
CHOICES = frozenset(["If", "StatelessIf"])

_BRANCHES = ("then_branch", "else_branch")


def chosen(
    node: Node,
    traced: Any,
    used: Sequence[int],
    differs: Callable[[Any], bool],
    plan: Callable[[Remainder], Vectorised | Refusal],
) -> Write:
    """Returns a rule that writes a choice. Both branches run for all rows, but fail only for rows
    that take the branch.

    `used` are the numbers of the needed outputs, and `differs` marks inputs whose rows have
    different lengths.
    """
    op = node.op
    handles = {tf.resource, tf.variant}
    if op.inputs[0].dtype != tf.bool or node.rank(0):
        raise NotVectorisedError(REASONS[op.type])
    if any(each.dtype in handles for each in (*op.inputs, *op.outputs)):
        raise NotVectorisedError(REASONS[op.type])
    shapes = [node.output_shape(number) for number in used]
    branches, needed = [], set()
    for name in _BRANCHES:
        body = internals.body_named(traced, op.get_attr(name).name)
        if body is None or len(body.inputs) != len(op.inputs) - 1:
            raise NotVectorisedError(REASONS[op.type])
        outputs = tuple(body.outputs[number] for number in used)
        inputs = tuple(body.inputs)
        branch = plan(Remainder(body, inputs, (), outputs, tuple(body.control_outputs)))
        if isinstance(branch, Refusal):
            raise NotVectorisedError(f"{REASONS[op.type]}; {branch.why}")
        if branch.checked:
            node.can_fail()
        branches.append(branch)
        needed |= {number for number, each in enumerate(inputs, 1) if branch.takes(each)}
    if any(differs(op.inputs[number]) for number in needed):
        raise NotVectorisedError(f"{REASONS[op.type]}, and takes rows of different lengths")
    given = {number: node.shape(number) for number in needed}

    def write(batch: BatchGraph, inputs: list[Any]) -> list[Any]:
        columns = [
            batch.repeated(each, given[number])
            if number in needed and not node.per_row[number]
            else each
            for number, each in enumerate(inputs)
        ][1:]
        first = inputs[0] if node.per_row[0] else batch.repeated(inputs[0], [])
        made = []
        for branch, taken in zip(branches, (first, tf.logical_not(first)), strict=True):
            if batch.taken is not None:
                taken = tf.logical_and(taken, batch.taken)
            outputs, holds = branch(columns, batch.row_count, taken)
            batch.conditions += [] if holds is None else [holds]
            made.append(outputs)
        results = [None] * len(op.outputs)
        for number, one, other, shape in zip(used, *made, shapes, strict=True):
            results[number] = tf.where(batch.widen(first, [], len(shape)), one, other)
        return results

    return write
