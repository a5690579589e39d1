"""Turns the core's warnings into Python's."""

from __future__ import annotations

import atexit
import contextlib
import warnings
from collections.abc import Iterator

from tfrfast import _native


@contextlib.contextmanager
def core_warnings(callers: int) -> Iterator[None]:
    """Issues the core's warnings after the `with` block, even if the block fails. A warning names
    the line that is `callers` calls up.
    """
    try:
        yield
    finally:
        for text in _native.take_warnings():
            warnings.warn(text, RuntimeWarning, stacklevel=callers + 3)


def show_core_warnings() -> None:
    """Issues the warnings that a read has caused."""
    for text in _native.take_warnings():
        warnings.warn(text, RuntimeWarning, stacklevel=3)


# Issues pending warnings at exit.
atexit.register(show_core_warnings)
