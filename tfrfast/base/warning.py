"""Warnings at the user's line, the core's among them."""

from __future__ import annotations

import atexit
import contextlib
import sys
import warnings
from collections.abc import Iterator
from types import FrameType

from tfrfast import _native

_NOT_THE_USERS = ("tfrfast", "tensorflow", "keras", "contextlib")


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Warns at the nearest line outside tfrfast and TensorFlow."""
    frame: FrameType | None = sys._getframe()
    level = 0
    while frame is not None and (
        frame.f_globals.get("__name__", "").partition(".")[0] in _NOT_THE_USERS
    ):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level + 1)


@contextlib.contextmanager
def core_warnings() -> Iterator[None]:
    """Issues the core's warnings after the `with` block, even if the block fails."""
    try:
        yield
    finally:
        show_core_warnings()


def show_core_warnings() -> None:
    """Issues the warnings that a read has caused."""
    for text in _native.take_warnings():
        warn(text, RuntimeWarning)


# Issues pending warnings at exit.
atexit.register(show_core_warnings)
