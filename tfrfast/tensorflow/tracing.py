"""Functions with bodies of tfrfast, made in less time than by tf.function.

No op in such a function needs an order, and only ops that the results need are kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow import internals


def traced(run: Callable[..., Any], given: tuple[Any, ...], attributes: dict[str, Any]) -> Any:
    """Returns the ConcreteFunction of a body that takes and returns tensors."""
    return internals.traced(run, given, attributes) or traced_in_order(run, given, attributes)


def traced_in_order(
    run: Callable[..., Any], given: tuple[Any, ...], attributes: dict[str, Any]
) -> Any:
    """Returns the ConcreteFunction of a body with any ops."""
    function = tf.function(run, given, autograph=False, experimental_attributes=attributes)
    return function.get_concrete_function()
