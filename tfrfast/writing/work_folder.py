"""Hidden folders beside new files, which hold the files until they get their names."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from typing import IO
from weakref import WeakSet

from tfrfast.storage.journal import Journal
from tfrfast.storage.paths import absolute_path

__all__ = ["WorkFolder", "clear", "held", "hold", "no_empty_folders", "remove_held"]

_LOCK = "lock"
_NO_LOCKS_HERE = (errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK)

# Forked children, such as the workers of an executor, may outlive this process.
_locks: WeakSet[IO[str]] = WeakSet()
os.register_at_fork(after_in_child=lambda: [lock.close() for lock in _locks])


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


def hold(folder: str, *, wait: bool, needs_lock: bool = False, busy: str = "") -> IO[str]:
    """Makes and locks the folder. Returns a file that holds the lock until it is closed.

    Raises BlockingIOError if another process has the lock and `wait` is False: with the sentence
    `busy`, if one is given. Raises PermissionError for a link or another user's folder, through
    which that user could lead this process to any files. A forked child holds the lock, too, but
    not with `busy`. If the filesystem has no locks, raises OSError with `needs_lock`, and otherwise
    keeps no process out.
    """
    name = os.path.join(folder, _LOCK)
    while True:
        made = True
        try:
            os.makedirs(folder)
        except FileExistsError:
            made = False
        try:
            if not made:
                _refuse_others(folder)
            lock = open(name, "w", encoding="utf-8", opener=_open_lock)  # noqa: SIM115
        except FileNotFoundError:
            continue  # another process has removed the folder
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            if os.path.samestat(os.fstat(lock.fileno()), os.stat(name)):
                if busy:
                    _locks.add(lock)
                return lock
        except FileNotFoundError:
            pass
        except OSError as error:
            if error.errno in _NO_LOCKS_HERE and not needs_lock:
                return lock
            lock.close()
            if busy and isinstance(error, BlockingIOError):
                raise BlockingIOError(errno.EAGAIN, busy, folder) from None
            raise
        lock.close()


def _refuse_others(folder: str) -> None:
    facts = os.lstat(folder)
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid not in (os.geteuid(), 0):
        raise PermissionError(
            errno.EACCES,
            "This hidden folder is of another user, or a link or a file. Only its owner can finish "
            "what was begun in it. Remove it to give that up",
            folder,
        )


def _open_lock(name: str, _: int) -> int:
    return os.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)


def clear(folder: str) -> None:
    """Empties a held folder, but for its lock."""
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        elif name != _LOCK:
            os.unlink(path)


def remove_held(folder: str) -> None:
    """Removes a held folder, its lock last, because others may take it as soon as that is gone."""
    with contextlib.suppress(OSError):
        clear(folder)
        os.unlink(os.path.join(folder, _LOCK))
        os.rmdir(folder)


@contextlib.contextmanager
def held(journal: Journal, busy: str) -> Iterator[None]:
    """Makes and locks the journal's folder. Removes it at the end, unless the journal stays."""
    with hold(journal.folder, wait=False, busy=busy):
        try:
            yield
        finally:
            if not journal.exists():
                remove_held(journal.folder)


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
