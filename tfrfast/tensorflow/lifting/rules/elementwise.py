"""Ops that compute each value from values at the same place: arithmetic, comparisons, functions."""

from __future__ import annotations

from typing import Any

from tfrfast.tensorflow.lifting.rules.node import BatchGraph, Node, Rule, Write
from tfrfast.tensorflow.lifting.rules.row_shapes import NotVectorisedError


def _broadcast(node: Node) -> Write:
    """The op itself. Rows are widened, so that broadcasting aligns their last dimensions."""
    rank = len(node.output_shape())

    def write(batch: BatchGraph, inputs: list[Any]) -> list[Any]:
        return batch.copy(node, _aligned(node, batch, inputs, rank))

    return write


def _select(node: Node) -> Write:
    """tf.compat.v1.where, which takes a condition for each row or for each value."""
    rank = len(node.output_shape())
    if node.rank(0) not in (0, rank):
        raise NotVectorisedError("takes a condition for each part of a row")

    def write(batch: BatchGraph, inputs: list[Any]) -> list[Any]:
        aligned = _aligned(node, batch, inputs, rank)
        types = [output.dtype for output in node.op.outputs]
        return batch.op("SelectV2", aligned, types, T=types[0])

    return write


def _of_one_shape(node: Node) -> Write:
    """An op whose inputs must all have the shape of its output."""
    shape = node.output_shape()

    def write(batch: BatchGraph, inputs: list[Any]) -> list[Any]:
        return batch.copy(
            node,
            [
                each if per_row else batch.repeated(each, shape)
                for each, per_row in zip(inputs, node.per_row, strict=True)
            ],
        )

    return write


def _power(node: Node) -> Write:
    """Negative powers of integers fail, so exponents of integers must be constants."""
    if node.dtype().is_integer and (node.constant(1, "an exponent") < 0).any():
        raise NotVectorisedError("takes negative powers of integers")
    return _broadcast(node)


def _aligned(node: Node, batch: BatchGraph, inputs: list[Any], rank: int) -> list[Any]:
    return [
        batch.widen(each, node.shape(number), rank) if node.per_row[number] else each
        for number, each in enumerate(inputs)
    ]


_ARITHMETIC = [
    *("Abs", "Add", "AddV2", "DivNoNan", "Mul", "MulNoNan", "Neg", "RealDiv"),
    *("Sqrt", "Square", "SquaredDifference", "Sub"),
]
_LIMITS_AND_STEPS = [
    *("Bucketize", "Ceil", "Floor", "LeakyRelu", "Maximum", "Minimum"),
    *("Relu", "Relu6", "Rint", "Round", "Sign"),
]
_COMPARISONS_AND_LOGIC = [
    *("Equal", "Greater", "GreaterEqual", "IsFinite", "IsInf", "IsNan", "Less", "LessEqual"),
    *("LogicalAnd", "LogicalNot", "LogicalOr", "NotEqual", "SelectV2"),
]
_BITS = [
    *("BitwiseAnd", "BitwiseOr", "BitwiseXor"),
    *("Invert", "LeftShift", "PopulationCount", "RightShift"),
]
_COPIES = ["Identity", "OnesLike", "StopGradient", "ZerosLike"]
#: Vector instructions compute these functions by formulas of their own.
FUNCTIONS = [
    *("Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Cos", "Cosh", "Elu", "Erf", "Erfc"),
    *("Exp", "Expm1", "Lgamma", "Log", "Log1p", "Reciprocal", "Rsqrt", "Selu", "Sigmoid"),
    *("Sin", "Sinh", "Softplus", "Softsign", "Tan", "Tanh"),
]

ELEMENTWISE: dict[str, Rule] = {
    **dict.fromkeys(_ARITHMETIC, _broadcast),
    **dict.fromkeys(_LIMITS_AND_STEPS, _broadcast),
    **dict.fromkeys(_COMPARISONS_AND_LOGIC, _broadcast),
    **dict.fromkeys(_BITS, _broadcast),
    **dict.fromkeys(_COPIES, _broadcast),
    **dict.fromkeys(FUNCTIONS, _broadcast),
    "AddN": _of_one_shape,
    "Pow": _power,
    "Select": _select,
}
