"""What the tables of rules consist of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow.lifting.rules.node import Node, Write

Dtypes = frozenset[Any]

FLOATS: Dtypes = frozenset([tf.float16, tf.bfloat16, tf.float32, tf.float64])
NONE: Dtypes = frozenset()


@dataclass(frozen=True)
class Rule:
    """How an op of one row runs on all rows of a batch."""

    #: Returns what writes the op, or raises NotVectorisedError.
    plan: Callable[[Node], Write]
    #: The dtypes in which a batch may round otherwise than a row: vector instructions compute some
    #: functions by another formula than single values, and add in another order.
    rounds: Dtypes = NONE
    #: Whether a zero may get the other sign, and a number too small for all its digits become 0.
    tiny: bool = False
