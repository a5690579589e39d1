"""What the core found worth a warning, said the way Python says it."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator

from tfrfast import _native


@contextlib.contextmanager
def core_warnings(callers: int) -> Iterator[None]:
    """Warns after what is in `with`, also if that fails, of whoever called so many calls up."""
    try:
        yield
    finally:
        for text in _native.take_warnings():
            warnings.warn(text, RuntimeWarning, stacklevel=callers + 3)
