"""What is left of a function when the parse is taken out of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Remainder:
    """What leads from the parsed columns of one row to the function's result.

    Whatever runs it also runs the operations of `must_run`.
    """

    #: The graph that was traced, a FuncGraph, in which all of these are.
    graph: Any
    #: The columns of one row.
    inputs: tuple[Any, ...]
    #: Tensors that stand for others outside the graph, and those.
    captures: tuple[tuple[Any, Any], ...]
    #: The result, flat.
    outputs: tuple[Any, ...]
    must_run: tuple[Any, ...]
