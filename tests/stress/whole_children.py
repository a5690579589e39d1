"""Children that end without an error, or are killed."""

from __future__ import annotations

import os
import signal
import time
import traceback
from collections.abc import Callable
from pathlib import Path


def started(work: Callable[[], object], folder: Path) -> int:
    """Starts a child, and returns its process number. The child writes its failure to a file in the
    folder.
    """
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.alarm(120)
            work()
            status = 0
        except BaseException:
            (folder / f"failure-{os.getpid()}").write_text(traceback.format_exc())
        finally:
            os._exit(status)
    return child


def finish(child: int, folder: Path) -> None:
    """Waits for the child's end. Raises an error if the child has failed."""
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    said = folder / f"failure-{child}"
    assert status == 0, said.read_text() if said.exists() else f"a child ended with {status}"


def kill(child: int, folder: Path, after_s: float) -> None:
    """Kills the child after that time. The child may have ended without an error before."""
    time.sleep(after_s)
    os.kill(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    said = folder / f"failure-{child}"
    assert status in (0, -signal.SIGKILL), said.read_text() if said.exists() else status
