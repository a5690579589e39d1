"""Limits the simultaneous requests to one bucket or server. A slow link gets fewer."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque

_MAX_AT_ONCE = 128
_MAX_REQUEST_BYTES = 8 << 20
_MIN_REQUEST_BYTES = 128 << 10


class Pace:
    """The requests to one bucket or server, for the client's thread alone.

    At first no request is held back. After a time-out, a quarter of the requests run, each for a
    quarter of the bytes. After as many answers as may run at once, one more request may run, and
    requests double in size.
    """

    def __init__(self) -> None:
        self.at_once = _MAX_AT_ONCE
        self.request_bytes = _MAX_REQUEST_BYTES
        self._s_per_byte: float | None = None  # of large answers
        self._running = 0
        self._answers = 0
        self._slowed_s = 0.0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def is_slow(self) -> bool:
        return self.request_bytes < _MAX_REQUEST_BYTES

    async def begin(self) -> float:
        """Waits until another request may run. Returns when it begins, for `timed_out`."""
        while self._running >= self.at_once:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._let_next()
                raise
        self._running += 1
        return time.monotonic()

    def end(self) -> None:
        """Ends a request with any result."""
        self._running -= 1
        self._let_next()

    def expected_s(self, count: int) -> float:
        """Returns the expected seconds of an answer of so many bytes; infinite if unknown."""
        return math.inf if self._s_per_byte is None else count * self._s_per_byte

    def answered(self, count: int, took_s: float) -> None:
        if count >= _MIN_REQUEST_BYTES:
            known = self._s_per_byte
            self._s_per_byte = took_s / count if known is None else (known + took_s / count) / 2
        if not self.is_slow and self.at_once == _MAX_AT_ONCE:
            return
        self._answers += 1
        if self._answers >= self.at_once:
            self._answers = 0
            self.at_once = min(_MAX_AT_ONCE, self.at_once + 1)
            self.request_bytes = min(_MAX_REQUEST_BYTES, 2 * self.request_bytes)
            self._let_next()

    def timed_out(self, began_s: float) -> None:
        """Slows down. A request from before the last slowdown causes no further slowdown."""
        if began_s < self._slowed_s:
            return
        self._slowed_s = time.monotonic()
        self._s_per_byte = None
        self._answers = 0
        self.at_once = max(1, min(self.at_once, self._running) // 4)
        self.request_bytes = max(_MIN_REQUEST_BYTES, self.request_bytes // 4)

    def _let_next(self) -> None:
        free = self.at_once - self._running
        while self._waiting and free > 0:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                free -= 1


_paces: dict[str, Pace] = {}


def pace_of(root: str) -> Pace:
    """Returns the pace of requests to that bucket or server."""
    if (pace := _paces.get(root)) is None:
        pace = _paces[root] = Pace()
    return pace


def forget_all() -> None:
    """Called in a forked child, which has none of these requests."""
    _paces.clear()
