"""Bytes that another thread changes while they are written, hashed or encoded."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import numpy as np


@contextlib.contextmanager
def changing(array: np.ndarray, total: int) -> Iterator[None]:
    """Changes each number of an array to `total` less the number, again and again.

    NumPy changes them without Python's lock, so they also change inside of calls.
    """
    stop = threading.Event()

    def change() -> None:
        while not stop.is_set():
            np.subtract(np.uint8(total), array, out=array)

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
    with changing(array, 1):
        yield array
