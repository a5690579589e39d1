"""The ops that a result needs, and the inputs that matter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any


def looked_at(op: Any) -> Sequence[Any]:
    """Returns the inputs that matter to an op that does not fail."""
    inputs: Sequence[Any] = op.inputs
    return inputs[:1] if op.type == "Assert" else inputs


def needed_inputs(op: Any) -> Sequence[Any]:
    """Returns the inputs that must be computed. Other inputs are constants, only quoted in a
    message.
    """
    read = {each.name for each in looked_at(op)}
    return [
        each
        for each in op.inputs
        if op.type != "Assert" or each.name in read or each.op.type != "Const"
    ]


def ops_before(last: Sequence[Any], given: set[str]) -> Iterator[Any]:
    """Returns these ops and their predecessors, back to the given tensors, in an order in which
    they can run.

    Control inputs are included, because they may fail.
    """
    needed: set[str] = set()
    pending = list(last)
    while pending:
        op = pending.pop()
        if op.name not in needed and op.name not in given:
            needed.add(op.name)
            pending.extend(each.op for each in needed_inputs(op))
            pending.extend(op.control_inputs)
    ops = last[0].graph.get_operations() if last else ()
    return (op for op in ops if op.name in needed)
