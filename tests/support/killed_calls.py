"""Kills a child process before each of its calls that change files, or lets such a call fail."""

from __future__ import annotations

import contextlib
import os
import signal
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tfrfast import _native

#: The child is killed before a call of these.
POINTS: list[tuple[Any, str]] = [
    (os, "fsync"),
    (os, "rename"),
    (os, "unlink"),
    (os, "replace"),
    (_native, "move_file"),
    (_native, "compact_index"),
]


def killed_after(calls: int, call: Callable[[], object]) -> bool:
    """Makes the call in a child. Kills it before its next call of POINTS. False if it ends first.

    Raises AssertionError if the call raises.
    """
    child = os.fork()
    if child == 0:
        left = calls

        def counting(function: Callable[..., Any]) -> Callable[..., Any]:
            def counted(*arguments: Any, **options: Any) -> Any:
                nonlocal left
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                left -= 1
                return function(*arguments, **options)

            return counted

        status = 1
        try:
            for module, name in POINTS:
                setattr(module, name, counting(getattr(module, name)))
            call()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert ended in (0, -signal.SIGKILL), "the call has raised"
    return ended != 0


@contextlib.contextmanager
def failing_second_move() -> Iterator[None]:
    """Lets the second file that gets a new name fail, which must be an OSError."""
    moves = iter([_native.move_file, None])

    def move(*arguments: Any) -> None:
        if (works := next(moves)) is None:
            raise OSError(5, "Input/output error")
        works(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_native, "move_file", move)
        with pytest.raises(OSError, match="Input/output"):
            yield
