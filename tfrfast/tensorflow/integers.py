"""Arguments whose values are known before a graph runs."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import tensorflow as tf


def static_integer(value: Any) -> int | None:
    static = tf.get_static_value(value)
    if static is None or getattr(static, "shape", ()) != () or isinstance(static, bool):
        return None
    try:
        return operator.index(static)
    except TypeError:
        return None


def static_integers(values: Sequence[Any]) -> tuple[int, ...] | None:
    """Returns all values; None if one is unknown."""
    known = [static_integer(value) for value in values]
    numbers = tuple(number for number in known if number is not None)
    return numbers if len(numbers) == len(known) else None
