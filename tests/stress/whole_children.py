"""Children that end without an error, or are killed."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

#: A child that takes this long hangs, on any machine.
PATIENCE_S = 200


def started(work: Callable[[], object], folder: Path, exits: bool = False) -> int:
    """Starts a child, and returns its process number. The child writes its failure to a file in the
    folder. With `exits` it ends as programs do: the end of the interpreter is part of the test.
    """
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            watch(failure(folder, os.getpid()))
            work()
            status = 0
        except BaseException:
            failure(folder, os.getpid()).write_text(traceback.format_exc())
        finally:
            if exits and status == 0:
                ctypes.pythonapi.Py_Exit(0)
            os._exit(status)
    return child


def watch(said: Path, patience_s: int = PATIENCE_S) -> None:
    """Lets this process die of SIGALRM, with its stacks in that file, if it takes too long."""
    file = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    faulthandler.register(signal.SIGALRM, file=file, chain=True)
    signal.alarm(patience_s)


def failure(folder: Path, child: int) -> Path:
    return folder / f"failure-{child}"


def finish(child: int, folder: Path) -> None:
    """Waits for the child's end. Raises an error if the child has failed."""
    _check(child, folder, [0])


def kill(child: int, folder: Path, after_s: float) -> None:
    """Kills the child after that time. The child may have ended without an error before."""
    time.sleep(after_s)
    os.kill(child, signal.SIGKILL)
    _check(child, folder, [0, -signal.SIGKILL])


def _check(child: int, folder: Path, statuses: list[int]) -> None:
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    said = failure(folder, child)
    assert status in statuses, f"status {status}: {said.read_text() if said.exists() else ''}"
