"""Ctrl-C at any moment ends the program with exit code 130 and one line.

During imports, and after the command, nothing needs cleaning up, and Ctrl-C ends the process at
once. In between, Ctrl-C is a KeyboardInterrupt.

This module has no slow imports, because Ctrl-C shows a traceback until end_at_once().
"""

from __future__ import annotations

import _thread
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import Any
else:
    import _signal as signal  # without the enums of `signal`, which take time

EXIT_CODE = 130


def end_at_once() -> None:
    """Makes Ctrl-C end the process, unless the signal is ignored or has another handler."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


class raised:  # noqa: N801
    """In this context, Ctrl-C raises KeyboardInterrupt instead of ending the process."""

    def __enter__(self) -> None:
        self._was_ending = signal.getsignal(signal.SIGINT) is _end
        if self._was_ending:
            sys.unraisablehook = _raise_again
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def __exit__(self, *_: object) -> None:
        if self._was_ending:
            signal.signal(signal.SIGINT, _end)


def _end(*_: object) -> None:
    os.write(2, b"tfrfast: interrupted\n")
    os._exit(EXIT_CODE)


def _raise_again(unraisable: Any) -> None:
    """Repeats an interruption in a destructor or a callback, where exceptions are lost."""
    if issubclass(unraisable.exc_type, KeyboardInterrupt):
        _thread.interrupt_main()
    else:
        sys.__unraisablehook__(unraisable)
