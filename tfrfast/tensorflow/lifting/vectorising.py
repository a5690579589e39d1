"""Runs the rest of a map function on whole columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tfrfast.tensorflow.history import Refusal
from tfrfast.tensorflow.lifting.rest import Rest


@dataclass(frozen=True)
class Vectorised:
    """A function of whole columns."""

    places: tuple[int, ...]
    #: Whether rows can fail. Then the second result says whether none of them has.
    checked: bool = False

    def __call__(self, columns: list[Any]) -> tuple[list[Any], Any]:
        return [columns[place] for place in self.places], None


def vectorised(rest: Rest, *, exact: bool, checked: bool) -> Vectorised | Refusal:
    """A function of whole columns that gives what the rest gives row by row, or why there is none."""
    if rest.graph.control_outputs:
        return Refusal("it has operations that must run for each record")
    inputs = {tensor.name: place for place, tensor in enumerate(rest.graph.inputs)}
    places = []
    for tensor in rest.graph.outputs:
        while tensor.op.type == "Identity":
            tensor = tensor.op.inputs[0]
        place = inputs.get(tensor.name, rest.row_inputs)
        if place >= rest.row_inputs:
            return Refusal(f"it does more than parse ({tensor.op.type})")
        places.append(place)
    return Vectorised(tuple(places))
