"""Faults of tfrfast, which must not stop a program that TensorFlow can run."""

from __future__ import annotations

import os

import tensorflow as tf

from tfrfast.tensorflow.history import Refusal

_SWITCH = "TFRFAST_RAISE_FAULTS"
# Errors of files. TensorFlow raises its own error when it reaches the file.
_OF_FILES = (OSError, tf.errors.OpError)


def reason_of(error: Exception, failed: str) -> Refusal:
    """Returns the error as the reason to leave a dataset to TensorFlow.

    Raises a fault of tfrfast if TFRFAST_RAISE_FAULTS=1, as in tests.
    """
    if isinstance(error, _OF_FILES):
        return Refusal(f"{failed}: {_first_line(error)}")
    if os.environ.get(_SWITCH) == "1":
        raise error
    name = type(error).__name__
    return Refusal(f"{failed} by a fault of tfrfast ({name}: {_first_line(error)})")


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
