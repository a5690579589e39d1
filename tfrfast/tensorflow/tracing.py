"""Functions whose bodies are our own, made in less time than tf.function takes.

Nothing in them has to run in an order, and nothing is to be kept that their results do not need.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

try:  # private names of TensorFlow, as 2.15 to 2.21 have them
    from tensorflow.python.eager.polymorphic_function.concrete_function import ConcreteFunction
    from tensorflow.python.eager.polymorphic_function.function_type_utils import derive_from_graph
    from tensorflow.python.framework.func_graph import func_graph_from_py_func
except ImportError:
    ConcreteFunction = None


def traced(run: Callable[..., Any], given: tuple[Any, ...], attributes: dict[str, Any]) -> Any:
    """The ConcreteFunction of a body that takes tensors and returns some."""
    if ConcreteFunction is not None:
        try:
            graph = func_graph_from_py_func("run", run, given, {}, add_control_dependencies=False)
            return ConcreteFunction.from_func_graph(graph, derive_from_graph(graph), attributes)
        except (AttributeError, TypeError):  # another TensorFlow
            pass
    return traced_in_order(run, given, attributes)


def traced_in_order(
    run: Callable[..., Any], given: tuple[Any, ...], attributes: dict[str, Any]
) -> Any:
    """The same of a body in which there may be anything."""
    function = tf.function(run, given, autograph=False, experimental_attributes=attributes)
    return function.get_concrete_function()
