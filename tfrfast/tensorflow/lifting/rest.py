"""What is left of a function when the parse is taken out of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Rest:
    """A graph that is given the parsed columns of one row and returns the function's result.

    Its outputs are `graph.outputs`, flat. Whatever runs it also runs `graph.control_outputs`.
    """

    #: A FuncGraph whose inputs are the columns of one row, and then the captures.
    graph: Any
    #: How many of the inputs are columns of a row.
    row_inputs: int
    #: The tensors outside the graph that the remaining inputs stand for.
    captures: tuple[Any, ...] = ()
    #: The graph that was traced first. It knows the bodies of functions, which copies do not.
    traced: Any = None
