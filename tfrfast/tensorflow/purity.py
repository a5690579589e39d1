"""What functions of users do besides making a result of their arguments."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

from tfrfast.tensorflow import internals

# The functions that these ops call are judged themselves.
_CALLING = frozenset(["Case", "If", "PartitionedCall", "StatefulPartitionedCall", "While"])
# Ops that only read a state.
_READING = frozenset(
    ["HashTableV2", "LookupTableFindV2", "LookupTableSizeV2", "ReadVariableOp", "ResourceGather"]
)
_EFFECTS = {
    "Assert": "checks each element",
    "CheckNumerics": "checks each element",
    "PrintV2": "prints each element",
    "PyFunc": "calls Python for each element",
    "EagerPyFunc": "calls Python for each element",
    "PyFuncStateless": "calls Python for each element",
}

_known: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()


def impurity(call: Any) -> str:
    """Returns what a call's functions do besides making a result of their arguments; "" if nothing.

    Then the functions need not run for elements that nobody wants. A parse, which fails for some
    records, counts as pure.
    """
    functions = (each.function for each in internals.functions_of(call))
    return next(filter(None, map(_impurity_of, functions)), "")


def _impurity_of(function: Any) -> str:
    if function not in _known:
        _known[function] = next(filter(None, map(_impurity_of_op, _ops(function))), "")
    return _known[function]


def _ops(function: Any) -> Iterator[str]:
    definition = function.graph.as_graph_def()
    for nodes in (definition.node, *(each.node_def for each in definition.library.function)):
        yield from (node.op for node in nodes)


def _impurity_of_op(op: str) -> str:
    if op in _EFFECTS:
        return _EFFECTS[op]
    has_state = op not in _CALLING and op not in _READING and internals.is_stateful(op)
    return f"changes a state ({op})" if has_state else ""
