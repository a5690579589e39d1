"""Ops whose floats may differ between a lifted function and a map() of tf.data.

A lifted function runs unchanged. tf.data gives other values for two reasons. tf.data rewrites
mapped functions: `not (a < b)` becomes `a >= b`, and terms and factors change places. And vector
instructions compute some functions by formulas of their own, and add in another order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow.lift.copying import needed
from tfrfast.tensorflow.lift.op_rules import ELEMENTWISE, FUNCTIONS, words

_FLOATS = (tf.float16, tf.bfloat16, tf.float32, tf.float64)
_COMPARISONS = ("Greater", "GreaterEqual", "Less", "LessEqual")
_SUMS = {"Add", "AddN", "AddV2"}
_QUOTIENTS = {"Div", "RealDiv"}
#: Ops that tf.data replaces, or that have other formulas or another order of addition for vectors.
_DIFFERING = {
    *FUNCTIONS,
    *words("BatchMatMul BatchMatMulV2 BatchMatMulV3 Cumprod Cumsum Einsum EuclideanNorm"),
    *words("LogSoftmax MatMul Mean Pow Prod Softmax Sum"),
}
_TRANSPARENT = words("Cast EnsureShape ExpandDims Identity Reshape Squeeze StopGradient Transpose")


def differing(graph: Any, results: Sequence[Any] | None = None) -> Iterator[str]:
    """Returns the types of such ops in a function, or before some of its results."""
    for op in needed(graph, graph.outputs if results is None else results):
        if op.type == "LogicalNot":
            compared = _origin(op.inputs[0])
            if compared.type in _COMPARISONS and compared.inputs[0].dtype in _FLOATS:
                yield op.type
        elif any(each.dtype in _FLOATS for each in (*op.inputs, *op.outputs)) and (
            op.type in _DIFFERING or _is_rewritten(op)
        ):
            yield op.type
    for function in graph.as_graph_def().library.function:  # branches and loops
        yield from (node.op for node in function.node_def if node.op in _DIFFERING)


def _is_rewritten(op: Any) -> bool:
    """True if tf.data replaces an op because of its inputs."""
    kinds = [_origin(each).type for each in op.inputs]
    if op.type in _SUMS:
        is_expanded = set(kinds) == {"Mul"} or _QUOTIENTS.issuperset(kinds)
        return len(kinds) > 2 or is_expanded or not _SUMS.isdisjoint(kinds)
    if op.type in ("ArgMax", "ArgMin", "Max", "Min"):
        return kinds[0] in ELEMENTWISE and kinds[0] != "Identity"
    if op.type in _QUOTIENTS:
        return kinds[1] == "Sqrt"
    return (op.type == "Mul" and "Mul" in kinds) or (op.type == "Sub" and "Exp" in kinds)


def _origin(tensor: Any) -> Any:
    while tensor.op.type in _TRANSPARENT:
        tensor = tensor.op.inputs[0]
    return tensor.op
