"""Ctrl-C at any moment ends the program with exit code 130 and one line.

While modules are imported, and after the command is done, there is nothing to clean up, and the
process ends at once. In between, Ctrl-C is a KeyboardInterrupt.

Nothing is imported here that takes time, because until end_at_once() Ctrl-C shows a traceback.
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
    """Ctrl-C ends the process, unless it is ignored or somebody else handles it."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


class raised:  # noqa: N801
    """In this context, Ctrl-C is raised where it would have ended the process."""

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
    """For an interruption in a destructor or a callback, where exceptions would be lost."""
    if issubclass(unraisable.exc_type, KeyboardInterrupt):
        _thread.interrupt_main()
    else:
        sys.__unraisablehook__(unraisable)
