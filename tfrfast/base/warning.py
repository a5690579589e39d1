"""Turns the core's warnings into Python's."""

from __future__ import annotations

import atexit
import contextlib
import warnings
from collections.abc import Iterator

from tfrfast import _native


@contextlib.contextmanager
def core_warnings(callers: int) -> Iterator[None]:
    """Issues the core's warnings after the `with` block, even if it fails. They name the line that
    is `callers` calls up.
    """
    try:
        yield
    finally:
        for text in _native.take_warnings():
            warnings.warn(text, RuntimeWarning, stacklevel=callers + 3)


def show_core_warnings() -> None:
    """Issues those that came up while something was read."""
    for text in _native.take_warnings():
        warnings.warn(text, RuntimeWarning, stacklevel=3)


# What nobody has seen by then is not lost.
atexit.register(show_core_warnings)
