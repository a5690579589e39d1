"""Ctrl-C while the main thread waits inside a library that never calls Python, such as TensorFlow.

Python notes the signal, and raises KeyboardInterrupt when the library returns. So the requests that
the library waits for must end. Python reports signals at once through a descriptor, if the program
does not use the descriptor itself.
"""

from __future__ import annotations

import os
import signal
import sys
import threading

_pipe: tuple[int, int] | None = None
_MOST_BYTES = 4096


def listen() -> int | None:
    """Returns a descriptor that is readable when a signal comes; None if unavailable.

    Available only in the main thread. A program that uses Python's descriptor keeps it.
    """
    global _pipe
    if threading.current_thread() is not threading.main_thread():
        return None
    if _pipe is None:
        _pipe = os.pipe()
        for end in _pipe:
            os.set_blocking(end, False)
    used = signal.set_wakeup_fd(_pipe[1], warn_on_full_buffer=False)
    if used not in (-1, _pipe[1]):
        signal.set_wakeup_fd(used)
        return None
    return _pipe[0]


def forget() -> None:
    """Called in a forked child, whose signals are not its parent's."""
    global _pipe
    if _pipe is None:
        return
    used = signal.set_wakeup_fd(-1)  # the child's only thread is its main thread
    if used != _pipe[1]:
        signal.set_wakeup_fd(used)
    for end in _pipe:
        os.close(end)
    _pipe = None


def is_raised(descriptor: int) -> bool:
    """True if the received signals should raise KeyboardInterrupt."""
    try:
        signals = os.read(descriptor, _MOST_BYTES)
    except BlockingIOError:
        return False
    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    return usual and signal.SIGINT in signals


def place_of_main_thread() -> tuple[int, int] | None:
    """Returns the main thread's place in the program, which stays the same while a library does not
    return.
    """
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    return None if frame is None else (id(frame), frame.f_lasti)
