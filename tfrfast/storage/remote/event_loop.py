"""An event loop that knows which calls obstore's threads still have to make.

These threads are not Python's. A thread that takes the GIL while Python ends is made to exit,
inside code that cannot be unwound, and the whole program aborts.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextvars import Context
from typing import Any

#: The call that obstore makes when a future is done, to check for cancellation.
_CALLBACK = "PyDoneCallback"
#: The time from a thread's last call into Python until it has released the GIL: microseconds, but
#: on a busy machine the thread waits for a processor.
_LAST_STEPS_S = 0.03
#: After this time the GIL is released.
_LONG_AGO_S = 5.0
_BETWEEN_LOOKS_S = 0.002


class ClientLoop(asyncio.SelectorEventLoop):
    """Each future of obstore is due until a thread of obstore has handed in the result, or has seen
    the cancellation.
    """

    def __init__(self) -> None:
        super().__init__()
        self._due: set[Any] = set()
        self._last_heard = -_LONG_AGO_S

    def create_future(self) -> asyncio.Future[Any]:
        return _Future(self)

    def expect(self, future: Any) -> None:
        self._due.add(future)

    def heard_of(self, future: Any) -> None:
        self._due.discard(future)
        self._last_heard = time.monotonic()

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        try:
            return super().call_soon_threadsafe(callback, *args, context=context)
        finally:
            # obstore passes the future as the first argument.
            if args and isinstance(args[0], _Future):
                self.heard_of(args[0])

    def wait_until_silent(self, patience_s: float) -> bool:
        """Waits until no thread of obstore will call Python again. False if one may."""
        until = time.monotonic() + patience_s
        while self._due and time.monotonic() < until:
            time.sleep(_BETWEEN_LOOKS_S)
        if time.monotonic() - self._last_heard < _LONG_AGO_S:
            time.sleep(_LAST_STEPS_S)
        return not self._due


class _Future(asyncio.Future):  # type: ignore[type-arg]
    def __init__(self, loop: ClientLoop) -> None:
        super().__init__(loop=loop)
        self._client_loop = loop
        self._home = threading.get_ident()

    def add_done_callback(
        self, callback: Callable[[Any], object], *, context: Context | None = None
    ) -> None:
        if type(callback).__name__ == _CALLBACK:
            self._client_loop.expect(self)
        super().add_done_callback(callback, context=context)

    def cancelled(self) -> bool:
        is_cancelled = super().cancelled()
        if is_cancelled and threading.get_ident() != self._home:
            self._client_loop.heard_of(self)
        return is_cancelled
