"""Functions whose bodies are our own, made in less time than tf.function takes.

Nothing in them has to run in an order, and nothing is to be kept that their results do not need.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow import internals


def traced(run: Callable[..., Any], given: tuple[Any, ...], attributes: dict[str, Any]) -> Any:
    """The ConcreteFunction of a body that takes tensors and returns some."""
    return internals.traced("run", run, given, attributes) or traced_in_order(
        run, given, attributes
    )


def traced_in_order(
    run: Callable[..., Any], given: tuple[Any, ...], attributes: dict[str, Any]
) -> Any:
    """The same of a body in which there may be anything."""
    function = tf.function(run, given, autograph=False, experimental_attributes=attributes)
    return function.get_concrete_function()
