"""Ops that only check values. A failed check is an error of its row."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrfast.tensorflow.lifting.rules.node import BatchGraph, Node, Write


def _assert(node: Node) -> Write:
    """Ignores the values that the message quotes, because TensorFlow itself makes each error."""
    node.can_fail()

    def write(batch: BatchGraph, inputs: list[Any]) -> list[Any]:
        batch.require(inputs[0], per_row=node.per_row[0])
        return []

    return write


def _check_numerics(node: Node) -> Write:
    node.can_fail()

    def write(batch: BatchGraph, inputs: list[Any]) -> list[Any]:
        batch.require(tf.math.is_finite(inputs[0]))
        return inputs

    return write


ASSERTING = {"Assert": _assert, "CheckNumerics": _check_numerics}
