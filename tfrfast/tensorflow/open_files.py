"""Files that are read in file order stay open from one epoch to the next."""

from __future__ import annotations

import weakref
from typing import Any

from tfrfast.tensorflow.library import calls


class OpenFiles:
    """Keeps the files of a dataset open and mapped from their first use on, as long as it lives.

    Else each epoch would open them, map them, and find their records again. A file that has changed
    is opened again nevertheless when an epoch begins.
    """

    def __init__(self) -> None:
        self._is_kept = False

    def keep(self, source: Any) -> None:
        """Begins with a source's text, unless only a graph will know it."""
        if self._is_kept or not hasattr(source, "numpy"):
            return
        text = source.numpy()
        keeper = calls.tfrfast_keep_open(text, len(text))
        if keeper is not None:
            closing = weakref.finalize(self, calls.tfrfast_let_close, keeper)
            closing.atexit = False  # daemon threads may be using them until the very end
        self._is_kept = True
