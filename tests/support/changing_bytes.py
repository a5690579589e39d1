"""Memory that another thread changes while it is written, hashed, parsed or encoded."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np


@contextlib.contextmanager
def changing(array: Any, *values: Any) -> Iterator[None]:
    """Writes one of `values` after the other into the array, again and again.

    NumPy writes numbers without Python's lock, so they also change inside of calls.
    """
    stop = threading.Event()

    def change() -> None:
        while not stop.is_set():
            for value in values:
                array[...] = value

    thread = threading.Thread(target=change)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@contextlib.contextmanager
def changing_bytes(count: int) -> Iterator[np.ndarray]:
    """Yields `count` bytes that are all alike before and after each change."""
    array = np.zeros(count, np.uint8)
    with changing(array, 1, 0):
        yield array
