"""Division. Dividing an integer by zero is an error of its row."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrfast.tensorflow.lifting.rules.elementwise import ELEMENTWISE
from tfrfast.tensorflow.lifting.rules.node import BatchGraph, Node, Write


def _divide(node: Node) -> Write:
    plain = ELEMENTWISE["RealDiv"](node)
    if not node.dtype().is_integer:
        return plain
    divisor = None if node.per_row[1] else tf.get_static_value(node.op.inputs[1])
    # Dividing the lowest integer by -1 ends the process, for a row as for a batch.
    if divisor is not None and (divisor != 0).all():
        return plain
    node.can_fail()

    def write(batch: BatchGraph, inputs: list[Any]) -> list[Any]:
        value, divisor = inputs
        fits = tf.not_equal(divisor, 0)
        batch.require(fits, per_row=node.per_row[1])
        return plain(batch, [value, tf.where(fits, divisor, tf.ones_like(divisor))])

    return write


_KINDS = ("Div", "FloorDiv", "FloorMod", "Mod", "TruncateDiv", "TruncateMod")

DIVISION = dict.fromkeys(_KINDS, _divide)
