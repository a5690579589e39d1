"""Ops that compute each value from those at the same place: arithmetic, comparisons, functions."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrfast.tensorflow.lifting.rules.node import Batch, Node, Write
from tfrfast.tensorflow.lifting.rules.row_shapes import NotVectorisedError
from tfrfast.tensorflow.lifting.rules.rule import FLOATS, Rule


def _broadcast(node: Node) -> Write:
    """The op itself. Rows are widened, so that broadcasting aligns their last dimensions."""
    rank = len(node.output_shape())

    def write(batch: Batch, inputs: list[Any]) -> list[Any]:
        return batch.copy(node, _aligned(node, batch, inputs, rank))

    return write


def _select(node: Node) -> Write:
    """tf.compat.v1.where, which takes a condition for each row as well as one for each value."""
    rank = len(node.output_shape())
    if node.rank(0) not in (0, rank):
        raise NotVectorisedError("takes a condition for each part of a row")

    def write(batch: Batch, inputs: list[Any]) -> list[Any]:
        aligned = _aligned(node, batch, inputs, rank)
        types = [output.dtype for output in node.op.outputs]
        return batch.op("SelectV2", aligned, types, T=types[0])

    return write


def _of_one_shape(node: Node) -> Write:
    """An op whose inputs must all have the shape of its output."""
    shape = node.output_shape()

    def write(batch: Batch, inputs: list[Any]) -> list[Any]:
        return batch.copy(
            node,
            [
                each if per_row else batch.repeated(each, shape)
                for each, per_row in zip(inputs, node.per_row, strict=True)
            ],
        )

    return write


def _power(node: Node) -> Write:
    """TensorFlow's optimiser squares the values of rows if the exponent is 2, and so do we.

    Negative powers of integers fail, so exponents of integers must be constants.
    """
    plain = _broadcast(node)
    if node.dtype().is_integer:
        if (node.constant(1, "an exponent") < 0).any():
            raise NotVectorisedError("takes negative powers of integers")
        return plain
    exponent = None if node.per_row[1] else tf.get_static_value(node.op.inputs[1])
    if exponent is None or exponent.shape != () or exponent != 2:
        return plain
    node.is_exact = True
    types = [output.dtype for output in node.op.outputs]
    return lambda batch, inputs: batch.op("Square", inputs[:1], types, T=types[0])


def _aligned(node: Node, batch: Batch, inputs: list[Any], rank: int) -> list[Any]:
    return [
        batch.widen(each, node.shape(number), rank) if node.per_row[number] else each
        for number, each in enumerate(inputs)
    ]


_EXACT = Rule(_broadcast)
_ROUNDS = Rule(_broadcast, rounds=FLOATS)
_TINY = Rule(_broadcast, tiny=True)

ELEMENTWISE = {
    # Arithmetic. Each rounds the exact result once, with any instructions.
    "Abs": _EXACT,
    "Add": _EXACT,
    "AddN": Rule(_of_one_shape),
    "AddV2": _EXACT,
    "DivNoNan": _EXACT,
    "Mul": _EXACT,
    "MulNoNan": _EXACT,
    "Neg": _EXACT,
    "RealDiv": _EXACT,
    "Sqrt": _EXACT,
    "Square": _EXACT,
    "SquaredDifference": _EXACT,
    "Sub": _EXACT,
    # Limits and steps.
    "Bucketize": _EXACT,
    "Ceil": _EXACT,
    "Floor": _EXACT,
    "LeakyRelu": _EXACT,
    "Maximum": _TINY,
    "Minimum": _TINY,
    "Relu": _TINY,
    "Relu6": _TINY,
    "Rint": _EXACT,
    "Round": _EXACT,
    "Sign": _TINY,
    # Comparisons and logic.
    "Equal": _EXACT,
    "Greater": _EXACT,
    "GreaterEqual": _EXACT,
    "IsFinite": _EXACT,
    "IsInf": _EXACT,
    "IsNan": _EXACT,
    "Less": _EXACT,
    "LessEqual": _EXACT,
    "LogicalAnd": _EXACT,
    "LogicalNot": _EXACT,
    "LogicalOr": _EXACT,
    "NotEqual": _EXACT,
    "Select": Rule(_select),
    "SelectV2": _EXACT,
    # Bits.
    "BitwiseAnd": _EXACT,
    "BitwiseOr": _EXACT,
    "BitwiseXor": _EXACT,
    "Invert": _EXACT,
    "LeftShift": _EXACT,
    "PopulationCount": _EXACT,
    "RightShift": _EXACT,
    # The same values, or only their shape.
    "Identity": _EXACT,
    "OnesLike": _EXACT,
    "StopGradient": _EXACT,
    "ZerosLike": _EXACT,
    # Functions that vector instructions compute by formulas of their own.
    "Acos": _ROUNDS,
    "Acosh": _ROUNDS,
    "Asin": _ROUNDS,
    "Asinh": _ROUNDS,
    "Atan": _ROUNDS,
    "Atanh": _ROUNDS,
    "Cos": _ROUNDS,
    "Cosh": _ROUNDS,
    "Elu": _ROUNDS,
    "Erf": _ROUNDS,
    "Erfc": _ROUNDS,
    "Exp": _ROUNDS,
    "Expm1": _ROUNDS,
    "Lgamma": _ROUNDS,
    "Log": _ROUNDS,
    "Log1p": _ROUNDS,
    "Pow": Rule(_power, rounds=FLOATS),
    "Reciprocal": _ROUNDS,
    "Rsqrt": _ROUNDS,
    "Selu": _ROUNDS,
    "Sigmoid": _ROUNDS,
    "Sin": _ROUNDS,
    "Sinh": _ROUNDS,
    "Softplus": _ROUNDS,
    "Softsign": _ROUNDS,
    "Tan": _ROUNDS,
    "Tanh": _ROUNDS,
}
