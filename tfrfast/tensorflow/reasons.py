"""Why TensorFlow does the work: refusals and steps for `tfr.explain`, warnings of slow paths, and
faults of tfrfast, which must not stop a program that TensorFlow can run.
"""

from __future__ import annotations

import inspect
import os
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any, Literal, NamedTuple

import tensorflow as tf

from tfrfast.base.warning import warn
from tfrfast.errors import SlowPathWarning
from tfrfast.tensorflow import internals

_SWITCH = "TFRFAST_RAISE_FAULTS"
# Errors of files. TensorFlow raises its own error when it reaches the file.
_OF_FILES = (OSError, tf.errors.OpError)
_told: set[str] = set()


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
_PICTURES = frozenset(["DecodeAndCropJpeg", "DecodeImage", "DecodeJpeg", "DecodePng"])
_AS_IMAGES = "tfr.Loader with tfr.Image, which decodes, cuts and resizes pictures as it reads"


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
    instead = "" if _PICTURES.isdisjoint(by_element) else _AS_IMAGES
    return Step(step.call, fused=True, why=why, instead=instead)


def _some(kinds: Sequence[str]) -> str:
    more = len(kinds) - _SHOWN
    return ", ".join(kinds[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def warn_once(
    kind: Literal["function", "names", "parse", "shuffle"], what: str, refusal: Refusal
) -> None:
    """Warns the first time for each kind, at the user's line."""
    if kind in _told:
        return
    _told.add(kind)
    instead = f" Instead: {refusal.instead}." if refusal.instead else ""
    warn(
        f"{what}: {refusal.why}.{instead} tfr.explain(dataset) shows the treatment of each call. "
        'Warned once; warnings.simplefilter("ignore", tfr.SlowPathWarning) silences it.',
        SlowPathWarning,
    )


def warn_of(
    kind: Literal["inflating", "requests", "seeks"], cost: Callable[[], str | None]
) -> None:
    """Warns once of a cost of an exact shuffle, if it matters. `cost` may measure reads."""
    text = None if kind in _told else cost()
    if text is not None:
        _told.add(kind)
        warn(text, SlowPathWarning)


def why_theirs() -> Refusal:
    """Returns why TensorFlow reads all datasets: it lacks a private name."""
    lacks = ", ".join(internals.missing()[:1])
    return Refusal(f"TensorFlow {tf.__version__} lacks {lacks}", "TensorFlow 2.15 to 2.21")


def reason_of(error: Exception, failed: str) -> Refusal:
    """Returns the error as the reason to leave a dataset to TensorFlow.

    Raises an error of the program's signal handler, such as a time limit, and with
    TFRFAST_RAISE_FAULTS=1, as in tests, a fault of tfrfast.
    """
    if _is_of_a_handler(error):
        raise error
    if isinstance(error, _OF_FILES):
        return Refusal(f"{failed}: {_first_line(error)}")
    if os.environ.get(_SWITCH) == "1":
        raise error
    name = type(error).__name__
    return Refusal(f"{failed} by a fault of tfrfast ({name}: {_first_line(error)})")


def _is_of_a_handler(error: Exception) -> bool:
    """A signal handler, unlike other functions, is given the frame that it interrupted."""
    return any(
        frame.f_back is not None and any(given is frame.f_back for given in _arguments(frame))
        for frame, _ in traceback.walk_tb(error.__traceback__)
    )


def _arguments(frame: FrameType) -> list[Any]:
    code = frame.f_code
    count = code.co_argcount + bool(code.co_flags & inspect.CO_VARARGS)
    given = [frame.f_locals.get(name) for name in code.co_varnames[:count]]
    return [each for one in given for each in (one if isinstance(one, tuple) else (one,))]


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
