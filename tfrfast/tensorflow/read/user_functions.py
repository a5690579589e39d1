"""What functions of users do, by the graphs that TensorFlow traced."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow import internals
from tfrfast.tensorflow.lift.parses import PARSERS

# The functions that these ops call are judged themselves.
CALLING = frozenset(["Case", "If", "PartitionedCall", "StatefulPartitionedCall", "While"])
# Ops that only read a state.
_READING = frozenset(
    ["HashTableV2", "LookupTableFindV2", "LookupTableSizeV2", "ReadVariableOp", "ResourceGather"]
)
_EFFECTS = {
    "Assert": "checks each element",
    "CheckNumerics": "checks each element",
    "EagerPyFunc": "calls Python for each element",
    "PrintV2": "prints each element",
    "PyFunc": "calls Python for each element",
    "PyFuncStateless": "calls Python for each element",
}
# Ops that TensorFlow does not count as state when it saves an iterator, and ops whose functions
# decide.
_WITHOUT_STATE = {
    *("Assert", "HashTableV2", "LookupTableFindV2", "LookupTableSizeV2", "PrintV2"),
    *("If", "While"),
}

# Decoding ops that give tensors of different shapes, or take longer than parsing.
_MEDIA = {
    *("DecodeAndCropJpeg", "DecodeBmp", "DecodeGif", "DecodeImage", "DecodeJpeg", "DecodePng"),
    *("DecodeWav", "DecodeWebP"),
}

_impurities: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()


def impurity(call: Any) -> str:
    """Returns why a call's functions must run even for elements that nobody wants; "" if they need
    not.

    A parse, which fails for some records, counts as pure. So do random numbers without a seed.
    """
    functions = (each.function for each in internals.functions_of(call))
    return next(filter(None, map(_impurity_of, functions)), "")


def _impurity_of(function: Any) -> str:
    if function not in _impurities:
        of_nodes = map(_impurity_of_node, nodes_of(function.graph))
        _impurities[function] = next(filter(None, of_nodes), "")
    return _impurities[function]


def nodes_of(graph: Any) -> Iterator[Any]:
    """Yields the nodes of a function's graph, and of all functions that it calls."""
    definition = graph.as_graph_def()
    yield from definition.node
    for each in definition.library.function:
        yield from each.node_def


def _impurity_of_node(node: Any) -> str:
    if node.op in _EFFECTS:
        return _EFFECTS[node.op]
    if node.op in CALLING or node.op in _READING or not internals.is_stateful(node.op):
        return ""
    if is_random(node) and not has_seed(node):
        return ""
    return f"changes a state ({node.op})"


def is_random(node: Any) -> bool:
    """True if an op draws numbers of its own, in the order of its calls if it has a seed."""
    return {"seed", "seed2"} <= node.attr.keys() and internals.is_stateful(node.op)


def has_seed(node: Any) -> bool:
    return bool(node.attr["seed"].i or node.attr["seed2"].i)


def is_constant(function: Any) -> bool:
    """True if a function always makes the same of the same arguments."""
    if any(each.dtype in (tf.resource, tf.variant) for each in function.captured_inputs):
        return False
    return not any(internals.is_stateful(each.type) for each in function.graph.get_operations())


def has_state(function: Any) -> bool:
    """True if a function has ops with a state, such as random numbers.

    TensorFlow saves symbolic positions at each element, and logs each function with a state then.
    """
    ops = {node.op for node in nodes_of(function.graph)} - _WITHOUT_STATE
    return any(map(internals.is_stateful, ops))


def parses_examples(call: Any) -> bool:
    """True if the function of a map() parses Examples, among other work."""
    return not PARSERS.isdisjoint(_ops_of(call))


def decodes_media(call: Any) -> bool:
    """True if the function of a map() must see single records, because of images or sounds."""
    return not _MEDIA.isdisjoint(_ops_of(call))


def _ops_of(call: Any) -> set[str]:
    graphs = (each.function.graph for each in internals.functions_of(call))
    return {operation.type for graph in graphs for operation in graph.get_operations()}
