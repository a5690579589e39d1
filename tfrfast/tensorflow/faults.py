"""Faults of tfrfast, which must not stop a program that TensorFlow can run."""

from __future__ import annotations

import inspect
import os
import traceback
from types import FrameType
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow import internals
from tfrfast.tensorflow.history import Refusal

_SWITCH = "TFRFAST_RAISE_FAULTS"
# Errors of files. TensorFlow raises its own error when it reaches the file.
_OF_FILES = (OSError, tf.errors.OpError)


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
