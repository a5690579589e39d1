"""Where TensorFlow rounds differently for a row than for a batch.

There are two reasons. Vector instructions compute some functions by formulas of their own, and add
in another order (`Rule.rounds`). And tf.data optimises the functions that it maps: it sorts the
terms of sums and the factors of products, takes out common factors, and divides by roots in one
step. Which floats come out depends on the names of ops. We run ops as they were written.
"""

from __future__ import annotations

from typing import Any

from tfrfast.tensorflow.lifting.rules.rule import FLOATS, Rule

_SUMS = frozenset(["Add", "AddN", "AddV2"])
_PRODUCTS = frozenset(["Mul"])
_QUOTIENTS = frozenset(["Div", "RealDiv"])
_TRANSPARENT = frozenset(
    [
        *("Cast", "EnsureShape", "ExpandDims", "Identity", "Reshape"),
        *("Squeeze", "StopGradient", "Transpose"),
    ]
)


# Others that tf.data's optimiser replaces, alone or together with what they are given.
_REPLACED = frozenset(["Exp", "Log", "Pow", "Rsqrt", "Sqrt", "Square"])


def is_rewritten(op: Any) -> bool:
    """Whether tf.data may compute an op on floats by another formula, even for a row."""
    dtypes = {each.dtype for each in (*op.inputs, *op.outputs)}
    return bool(dtypes & FLOATS) and (op.type in _REPLACED or _may_be_rewritten(op))


def may_be_rewritten(kind: str) -> bool:
    """The same of ops of a type, whatever they are given."""
    return kind in _REPLACED | _SUMS | _PRODUCTS | _QUOTIENTS | {"Sub"}


def may_round_otherwise(op: Any, rule: Rule) -> bool:
    """Whether an op may differ in the last bits from TensorFlow's result for a row."""
    dtypes = {each.dtype for each in (*op.inputs, *op.outputs)}
    return bool(dtypes & rule.rounds) or (bool(dtypes & FLOATS) and _may_be_rewritten(op))


def _may_be_rewritten(op: Any) -> bool:
    kinds = [_origin(each).type for each in op.inputs]
    if op.type in _SUMS:
        is_expanded = all(each in _PRODUCTS for each in kinds)
        is_expanded = is_expanded or all(each in _QUOTIENTS for each in kinds)
        return len(kinds) > 2 or is_expanded or not _SUMS.isdisjoint(kinds)
    if op.type in _PRODUCTS:
        return not _PRODUCTS.isdisjoint(kinds)
    return op.type in _QUOTIENTS and kinds[1] == "Sqrt"


def _origin(tensor: Any) -> Any:
    while tensor.op.type in _TRANSPARENT:
        tensor = tensor.op.inputs[0]
    return tensor.op
