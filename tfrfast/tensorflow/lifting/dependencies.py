"""Which ops a result needs, and which of their inputs matter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any


def looked_at(op: Any) -> Sequence[Any]:
    """The inputs of an op that matter where it does not fail."""
    inputs: Sequence[Any] = op.inputs
    return inputs[:1] if op.type == "Assert" else inputs


def inputs_of(op: Any, whole_splits: Mapping[str, Any]) -> Sequence[Any]:
    """The inputs of an op, or the one tensor that it returns as it is (splitting.py)."""
    inputs: Sequence[Any] = [whole_splits[op.name]] if op.name in whole_splits else op.inputs
    return inputs


def needed_inputs(op: Any, whole_splits: Mapping[str, Any]) -> Sequence[Any]:
    """The inputs that have to be made. Others are constants, only quoted in a message."""
    read = {each.name for each in looked_at(op)}
    given = inputs_of(op, whole_splits)
    return [
        each
        for each in given
        if op.type != "Assert" or each.name in read or each.op.type != "Const"
    ]


def ops_before(
    last: Sequence[Any], given: set[str], whole_splits: Mapping[str, Any]
) -> Iterator[Any]:
    """These ops and those before them, after what is given, in an order in which they can run.

    Those that an op only waits for are among them, because they may fail.
    """
    needed: set[str] = set()
    pending = list(last)
    while pending:
        op = pending.pop()
        if op.name not in needed and op.name not in given:
            needed.add(op.name)
            pending.extend(each.op for each in needed_inputs(op, whole_splits))
            pending.extend(op.control_inputs)
    ops = last[0].graph.get_operations() if last else ()
    return (op for op in ops if op.name in needed)
