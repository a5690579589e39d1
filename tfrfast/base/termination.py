"""SIGTERM as an exception, while files must be removed before the process ends."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType

_waiting = 0
_home = 0


def begin() -> None:
    """Until `end`, SIGTERM raises SystemExit in the main thread, so that `with` blocks end.

    Does nothing outside the main thread, and keeps a program's own handler.
    """
    global _waiting, _home
    _waiting += 1
    _home = os.getpid()
    if threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _end)


def end() -> None:
    """Ends the effect of one call of `begin`."""
    global _waiting
    _waiting -= 1
    if _waiting == 0 and threading.current_thread() is threading.main_thread():
        _restore()


def _restore() -> None:
    if signal.getsignal(signal.SIGTERM) is _end:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _end(number: int, _: FrameType | None) -> None:
    # A forked child leaves all files to its parent.
    if _waiting > 0 and os.getpid() == _home:
        raise SystemExit(128 + number)
    _restore()
    os.kill(os.getpid(), number)
