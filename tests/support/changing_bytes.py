"""Bytes that another thread changes while they are written, hashed or encoded."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import numpy as np


@contextlib.contextmanager
def changing_bytes(count: int) -> Iterator[np.ndarray]:
    """Yields `count` bytes that are all alike before and after each change.

    NumPy changes them without Python's lock, so they also change inside of calls.
    """
    array = np.zeros(count, np.uint8)
    stop = threading.Event()

    def change() -> None:
        while not stop.is_set():
            np.bitwise_xor(array, 1, out=array)

    thread = threading.Thread(target=change)
    thread.start()
    try:
        yield array
    finally:
        stop.set()
        thread.join()
