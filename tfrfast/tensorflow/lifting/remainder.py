"""The remainder of a function without its parse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Remainder:
    """The operations from the parsed columns of one row to the function's result.

    A run includes the operations of `must_run`.
    """

    #: The traced FuncGraph, which holds all tensors below.
    graph: Any
    #: The columns of one row.
    inputs: tuple[Any, ...]
    #: Placeholders of tensors outside the graph, and these tensors.
    captures: tuple[tuple[Any, Any], ...]
    #: The result, flat.
    outputs: tuple[Any, ...]
    must_run: tuple[Any, ...]
