"""Why TensorFlow does the work: refusals and steps for `tfr.explain`, warnings of slow paths, and
faults of tfrfast, which must not stop a program that TensorFlow can run.
"""

from __future__ import annotations

import inspect
import os
import traceback
from collections.abc import Callable
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
    """The reason why a call is not planned, and the remedy.

    A limit of tfrfast says that "tfrfast does not" do it. By any other reason, the call cannot be
    planned, or gains nothing.
    """

    why: str
    instead: str = ""


class RefusedError(Exception):
    """Raised where a call cannot be planned."""

    def __init__(self, why: str | Refusal, instead: str = "") -> None:
        self.refusal = Refusal(why, instead) if isinstance(why, str) else why
        super().__init__(self.refusal.why)


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
    """Returns an error as the reason to leave a dataset to TensorFlow.

    Raises an error of the program's signal handler, such as a time limit, and with
    TFRFAST_RAISE_FAULTS=1, as in tests, a fault of tfrfast.
    """
    if isinstance(error, RefusedError):
        return error.refusal
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
