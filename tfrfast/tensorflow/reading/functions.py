"""The functions that TensorFlow traced: what they call, and what they capture."""

from __future__ import annotations

from typing import Any

from tfrfast.tensorflow.lifting import internals


def called_by(operation: Any) -> Any:
    """The graph of the function that an operation calls; None if it cannot be had."""
    return internals.body_of(operation)


def captures_of(function: Any) -> dict[str, Any]:
    """The tensor outside a function by the name of the input that stands for it."""
    return {inside.name: outside for outside, inside in internals.captures_of(function.graph)}
