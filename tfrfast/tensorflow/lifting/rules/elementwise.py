"""Ops that compute each value from values at the same place: arithmetic, comparisons, functions."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrfast.tensorflow.lifting.rules.node import BatchGraph, Node, Rule, Write
from tfrfast.tensorflow.lifting.rules.row_shapes import NotVectorisedError

#: Integer types for which vector instructions and scalar instructions give different results.
_NARROW = frozenset([tf.int8, tf.int16, tf.uint8, tf.uint16, tf.uint32])


def _broadcast(node: Node) -> Write:
    """The op itself. Rows are widened, so that broadcasting aligns their last dimensions."""
    rank = len(node.output_shape())

    def write(batch: BatchGraph, inputs: list[Any]) -> list[Any]:
        aligned = [
            batch.widen(each, node.shape(number), rank) if node.per_row[number] else each
            for number, each in enumerate(inputs)
        ]
        return batch.copy(node, aligned)

    return write


def _power(node: Node) -> Write:
    """Negative powers of integers fail, so exponents of integers must be constants."""
    if node.dtype().is_integer and (node.constant(1, "an exponent") < 0).any():
        raise NotVectorisedError("takes negative powers of integers")
    return _broadcast(node)


def _divide(node: Node) -> Write:
    """Division of integers by zero fails, so divisors of integers must be constants."""
    if node.dtype().is_integer and (node.constant(1, "a divisor") == 0).any():
        raise NotVectorisedError("divides integers by zero")
    return _broadcast(node)


def _cast(node: Node) -> Write:
    """If a float does not fit into a narrow integer, the result depends on its neighbours."""
    if node.dtype().is_floating and node.op.outputs[0].dtype in _NARROW:
        raise NotVectorisedError("casts floats to narrow integers")
    return _broadcast(node)


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
DIVISION = ["Div", "FloorDiv", "FloorMod", "Mod", "TruncateDiv", "TruncateMod"]
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
    **dict.fromkeys(DIVISION, _divide),
    "Cast": _cast,
    "Pow": _power,
}
