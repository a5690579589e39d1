"""Hidden folders beside new files, which hold the files until they get their names."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from typing import IO

from tfrfast.storage.paths import absolute_path

__all__ = ["LOCK", "WorkFolder", "hold", "no_empty_folders"]

LOCK = "lock"
_NO_LOCKS_HERE = (errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK)


@contextlib.contextmanager
def no_empty_folders(*folders: str) -> Iterator[None]:
    """On exit, removes the folders, and their parents, that were made meanwhile and are empty.

    So refused or failed work leaves no empty folders.
    """
    missing = []
    for each in folders:
        while each and not os.path.lexists(each):
            missing.append(each)
            each = os.path.dirname(each)
    try:
        yield
    finally:
        for each in sorted(missing, key=len, reverse=True):
            with contextlib.suppress(OSError):
                os.rmdir(each)


def hold(folder: str, *, wait: bool, needs_lock: bool = False) -> IO[str]:
    """Makes and locks the folder. Returns a file that holds the lock until it is closed.

    A forked child holds the lock, too. Raises BlockingIOError if another process has the lock and
    `wait` is False. If the filesystem has no locks, raises OSError with `needs_lock`, and otherwise
    keeps no process out.
    """
    name = os.path.join(folder, LOCK)
    while True:
        os.makedirs(folder, exist_ok=True)
        try:
            lock = open(name, "w", encoding="utf-8")  # noqa: SIM115
        except FileNotFoundError:
            continue  # another process has removed the folder
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            if os.path.samestat(os.fstat(lock.fileno()), os.stat(name)):
                return lock
        except FileNotFoundError:
            pass
        except OSError as error:
            if error.errno in _NO_LOCKS_HERE and not needs_lock:
                return lock
            lock.close()
            raise
        lock.close()


class WorkFolder:
    """A hidden folder beside `out`, for files that will move to `out`. Use it as a context manager.

    Entering removes the folders of killed processes with the same `out`. Leaving removes this
    folder.
    """

    def __init__(self, out: str) -> None:
        self._folder, self._last = os.path.split(absolute_path(out))
        self.path = os.path.join(self._folder, f".{self._last}-{secrets.token_hex(6)}.tfrfast")

    def inside(self, *names: str) -> str:
        return os.path.join(self.path, *names)

    def __enter__(self) -> WorkFolder:
        with contextlib.ExitStack() as stack:
            stack.enter_context(no_empty_folders(self._folder))
            os.makedirs(self._folder, exist_ok=True)
            for path in self._others():
                # Folders of other users and live processes stay. Without locks, all stay.
                with contextlib.suppress(OSError), hold(path, wait=False, needs_lock=True):
                    shutil.rmtree(path, ignore_errors=True)
            stack.enter_context(hold(self.path, wait=True))
            stack.callback(shutil.rmtree, self.path, ignore_errors=True)
            self._ending = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.close()

    def _others(self) -> Iterator[str]:
        name = re.compile(rf"\.{re.escape(self._last)}-[0-9a-f]{{12}}\.tfrfast")
        with os.scandir(self._folder) as entries:
            for entry in entries:
                if name.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False):
                    yield entry.path
