"""The intermediate files of `tfr.shuffle`, and how far it has got: what an interruption leaves."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from typing import Any

_STATE = "state.json"
_LOCK = "lock"
_NO_LOCKS_HERE = (errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK)


class WorkFolder:
    """A folder of one shuffle's own, held by one process at a time.

    `state` is what was saved last, or empty. Saving replaces it in one step, so it is never torn.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.state: dict[str, Any] = {}

    def inside(self, *names: str) -> str:
        return os.path.join(self.path, *names)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Loads the state. At the end the folder goes, unless it holds a state to go on from."""
        os.makedirs(self.path, exist_ok=True)
        with open(self.inside(_LOCK), "w", encoding="utf-8") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise BlockingIOError(
                    errno.EAGAIN, "Another process is shuffling to these names right now", self.path
                ) from None
            except OSError as error:
                if error.errno not in _NO_LOCKS_HERE:
                    raise
            self._load()
            try:
                yield
            finally:
                if not os.path.exists(self.inside(_STATE)):
                    shutil.rmtree(self.path, ignore_errors=True)

    def _load(self) -> None:
        try:
            with open(self.inside(_STATE), encoding="utf-8") as file:
                state = json.load(file)
            self.state = state if isinstance(state, dict) else {}
        except (FileNotFoundError, ValueError):
            self.state = {}

    def begin(self, state: dict[str, Any]) -> None:
        """Forgets whatever was done, which may have been another shuffle to the same names."""
        self.forget()
        for name in os.listdir(self.path):
            if name != _LOCK:
                path = self.inside(name)
                shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
        self.state = state

    def save(self, *, durable: bool = False) -> None:
        temporary = self.inside(_STATE + ".new")
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump(self.state, file)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, self.inside(_STATE))

    def forget(self) -> None:
        """Nothing is left to go on from."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.inside(_STATE))
