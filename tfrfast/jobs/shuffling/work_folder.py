"""The intermediate files and the progress of `tfr.shuffle`, which survive an interruption."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from typing import IO, Any

from tfrfast import _native
from tfrfast.storage.paths import written_file
from tfrfast.writing.work_folder import LOCK, hold

_STATE = "state.json"


def held(folder: str) -> IO[str]:
    """Makes the folder, which one process holds at a time, until it closes what this returns."""
    try:
        return hold(folder, wait=False)
    except BlockingIOError:
        raise BlockingIOError(
            errno.EAGAIN, "Another process is shuffling to these names right now", folder
        ) from None


class WorkFolder:
    """A folder that belongs to one shuffle, and that one process holds at a time.

    `state` is what was saved last, or empty. Saving replaces it in one step, so it is never torn.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.state: dict[str, Any] = {}

    def inside(self, *names: str) -> str:
        return os.path.join(self.path, *names)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Loads the state. Removes the folder at the end, unless it has a state to resume from."""
        with held(self.path):
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
        """Removes all earlier work, which may be that of another shuffle to the same names."""
        self.forget()
        for name in os.listdir(self.path):
            if name != LOCK:
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
        """Removes the saved state: there is nothing to resume."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.inside(_STATE))


def can_resume(out: str, work: str | os.PathLike[str] | None) -> bool:
    """Whether a shuffle to these names has left something that the same call goes on with."""
    return os.path.exists(os.path.join(work_folder_path(out, work), _STATE))


def work_folder_path(out: str, work: str | os.PathLike[str] | None) -> str:
    """The folder that belongs to this shuffle alone."""
    folder, name = os.path.split(out)
    if work is not None:
        # Shuffles to the same names in different folders may share `work`.
        where = hashlib.sha256(os.fsencode(os.path.realpath(folder))).hexdigest()[:8]
        return os.path.join(os.fsdecode(written_file(work)), f"shuffle-{name}-{where}")
    os.makedirs(folder or ".", exist_ok=True)
    sibling = _native.sibling_index_folder(os.fsencode(os.path.join(folder, "any")))
    with contextlib.suppress(OSError):
        os.makedirs(sibling, exist_ok=True)
        if os.stat(sibling).st_dev == os.stat(folder or ".").st_dev:
            return os.path.join(sibling, f"shuffle-{name}")
    # Shards are moved to their places at the end, which only works within one filesystem.
    return os.path.join(folder, f".tfrfast-shuffle-{name}")
