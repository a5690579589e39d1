"""A program that closes descriptors which are not its own, as daemons do, and opens other files."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from patience import PATIENCE_S

#: The numbers that the program closes: all but the standard streams.
CLOSED = range(3, 256)


class OtherFiles:
    """The files that the program opens instead: they get the numbers that it has closed."""

    def __init__(self, path: str | Path, mode: int = os.O_RDONLY) -> None:
        os.closerange(CLOSED.start, CLOSED.stop)
        self._files = [os.open(path, mode) for _ in range(64)]
        self._path = Path(path)
        self._bytes = self._path.read_bytes()

    def check(self) -> None:
        """Every file is still open, still that file, and unchanged."""
        for each in self._files:
            assert os.path.samestat(os.fstat(each), os.stat(self._path)), "a file was closed"
        assert self._path.read_bytes() == self._bytes, "a file was changed"


@contextlib.contextmanager
def other_files(path: str | Path, mode: int = os.O_RDONLY) -> Iterator[None]:
    """Closes the descriptors and opens `path` instead; at the end, checks that file."""
    files = OtherFiles(path, mode)
    yield
    files.check()


def in_child(work: Callable[[], Any]) -> Any:
    """Returns the result of `work` in a forked child; its exceptions are raised here.

    Only in a child may a test close every descriptor.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(PATIENCE_S)  # a child that hangs dies
        answer = os.dup2(writing, CLOSED.stop)
        try:
            result = pickle.dumps((work(), None))
        except BaseException:
            result = pickle.dumps((None, traceback.format_exc()))
        with open(answer, "wb") as file:
            file.write(result)
        os._exit(0)
    os.close(writing)
    with open(reading, "rb") as file:
        said = file.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status == 0, f"the child ended with {status}"
    value, failure = pickle.loads(said)
    assert failure is None, failure
    return value
