"""The calls on a dataset, and the treatment of each call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Refusal(NamedTuple):
    """The reason why a call is not planned, and the remedy."""

    why: str
    instead: str = ""


@dataclass(frozen=True)
class Step:
    """A call on a dataset, for `tfr.explain`."""

    call: str
    #: True if the planned pipeline does the work of the call.
    fused: bool
    #: The reason if the call is not fused; otherwise a note on the treatment, if needed.
    why: str = ""
    #: The remedy that makes the call fused; empty without a remedy.
    instead: str = ""
    #: True if no later call can be fused.
    ends_plan: bool = False


#: The treatment of map() and filter() of single records.
OF_EACH = "for each record, after what is planned"
_OF_BATCHES = "records are decoded where they are read, and the rest runs "
_SELECTS = "selects rows of whole blocks"
_SHOWN = 3


def lifted_step(
    step: Step, by_element: Sequence[str], differing: Sequence[str], of: str = "batches"
) -> Step:
    """Returns the step of a lifted map() or filter().

    The ops `by_element` run row by row, and the ops `differing` may give other values than in
    tf.data.
    """
    if step.call.startswith("filter("):
        return Step(step.call, fused=True, why=_SELECTS)
    why = f"{_OF_BATCHES}on whole {of}"
    if by_element:
        why += f", but row by row from {_some(by_element)} on"
    if differing:
        why += f"; floats of {_some(differing)} may differ from tf.data's"
    return Step(step.call, fused=True, why=why)


def _some(kinds: Sequence[str]) -> str:
    more = len(kinds) - _SHOWN
    return ", ".join(kinds[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
