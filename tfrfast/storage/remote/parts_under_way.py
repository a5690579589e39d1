"""The number of simultaneous parts of uploads: few at first, more while answers are quick."""

from __future__ import annotations

import asyncio
import time
import weakref
from collections.abc import Callable
from queue import Empty, SimpleQueue

import numpy as np
import numpy.typing as npt

Piece = npt.NDArray[np.uint8]

FIRST = 4
_QUICK_S = 5.0
_SLOW_S = 15.0
_LOOK_S = 0.01


class PartsUnderWay:
    """Allows between `least` and `most` simultaneous parts in memory, for all objects of a writer.

    A slow link gets few parts, so that each is sent within the time limit of a request. Any thread
    may wait for space.
    """

    def __init__(self, most: int, least: int = 1) -> None:
        self._most = max(most, least)
        self._least = least
        self.allowed = min(self._most, max(FIRST, least))
        #: An entry for each further part. Putting an entry back takes no lock, because a finaliser
        #: puts it back.
        self._space: SimpleQueue[None] = SimpleQueue()
        for _ in range(self.allowed):
            self._space.put(None)

    def take_space(self, wait_s: float) -> bool:
        """Waits for space. False if no space came in time."""
        try:
            self._space.get(timeout=wait_s)
            return True
        except Empty:
            return False

    async def space(self, is_given_up: Callable[[], bool]) -> None:
        """Waits for space. Raises InterruptedError when the upload is abandoned."""
        while not is_given_up():
            try:
                return self._space.get_nowait()
            except Empty:
                await asyncio.sleep(_LOOK_S)
        raise InterruptedError

    def hold(self, piece: Piece) -> None:
        """Takes space until the part's memory is freed after sending."""
        weakref.finalize(piece, self._sent, time.monotonic()).atexit = False

    def _sent(self, began_s: float) -> None:
        took_s = time.monotonic() - began_s
        if took_s > _SLOW_S and self.allowed > self._least:
            self.allowed -= 1
            return
        self._space.put(None)
        if took_s < _QUICK_S and self.allowed < self._most:
            self.allowed += 1
            self._space.put(None)
