"""The intermediate files and the progress of `tfr.shuffle`, which survive an interruption."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from typing import Any

from tfrfast import _native
from tfrfast.storage.output import named_url, shards_path
from tfrfast.storage.paths import written_file
from tfrfast.writing.work_folder import LOCK, hold, no_empty_folders

_STATE = "state.json"


@contextlib.contextmanager
def held(folder: str) -> Iterator[None]:
    """Makes and locks the folder. One process holds the folder at a time."""
    with no_empty_folders(os.path.dirname(folder)):
        try:
            lock = hold(folder, wait=False)
        except BlockingIOError:
            raise BlockingIOError(
                errno.EAGAIN, "Another process is shuffling to these names right now", folder
            ) from None
        with lock:
            yield


class ResumableFolder:
    """The folder of one shuffle. One process holds the folder at a time.

    `state` is the last saved state, or empty. Saving replaces the state in one step, never in part.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.state: dict[str, Any] = {}

    def inside(self, *names: str) -> str:
        return os.path.join(self.path, *names)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Loads the state. Removes the folder at the end, unless a saved state can be resumed."""
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
        """Removes all earlier work, even of another shuffle to the same names."""
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
        """Removes the saved state, so that nothing can be resumed."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.inside(_STATE))


def can_resume(out: str, work: str | os.PathLike[str] | None) -> bool:
    """True if a shuffle to these names has left a state that the same call can resume."""
    if url := named_url(out):
        if work is None:
            return False
        out, work = shards_path(url, upload_folder(url, work)), None
    return os.path.exists(os.path.join(resumable_folder_path(out, work), _STATE))


def upload_folder(url: str, work: str | os.PathLike[str]) -> str:
    """Returns the folder in `work` for shuffles to that URL."""
    which = hashlib.sha256(url.encode(errors="surrogateescape")).hexdigest()[:8]
    return os.path.join(os.fsdecode(written_file(work)), f"upload-{url.rpartition('/')[2]}-{which}")


def resumable_folder_path(out: str, work: str | os.PathLike[str] | None) -> str:
    """Returns the folder of this shuffle."""
    folder, name = os.path.split(out)
    if work is not None:
        # Shuffles to the same names in different folders may share `work`.
        where = hashlib.sha256(os.fsencode(os.path.realpath(folder))).hexdigest()[:8]
        return os.path.join(os.fsdecode(written_file(work)), f"shuffle-{name}-{where}")
    sibling = _native.sibling_index_folder(os.fsencode(os.path.join(folder, "any")))
    place = _first_that_exists(sibling)
    may_be_there = os.path.isdir(place) and os.access(place, os.W_OK | os.X_OK)
    # Shards are moved at the end, which works only within one filesystem.
    if may_be_there and os.stat(place).st_dev == os.stat(_first_that_exists(folder)).st_dev:
        return os.path.join(sibling, f"shuffle-{name}")
    return os.path.join(folder, f".tfrfast-shuffle-{name}")


def _first_that_exists(folder: str) -> str:
    while folder and not os.path.exists(folder):
        folder = os.path.dirname(folder)
    return folder or "."
