"""Keeps files that are read in file order open between epochs."""

from __future__ import annotations

import weakref
from typing import Any

from tfrfast.tensorflow.library import calls


class OpenFiles:
    """Keeps the files of a dataset open and mapped from their first use on, for the dataset's life.

    Otherwise each epoch would open and map the files, and find their records again: mapping 100 MB
    takes a third of such an epoch's processor time. A changed file is still opened again when an
    epoch begins.
    """

    def __init__(self) -> None:
        self._is_kept = False

    def keep(self, source: Any) -> None:
        """Takes a source's text, unless only a graph will know the text."""
        if self._is_kept or not hasattr(source, "numpy"):
            return
        text = source.numpy()
        keeper = calls.tfrfast_keep_open(text, len(text))
        if keeper is not None:
            closing = weakref.finalize(self, calls.tfrfast_close_plan, keeper)
            closing.atexit = False  # daemon threads may use the files until the very end
        self._is_kept = True
