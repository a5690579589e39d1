"""Files that appear under their names when they are complete, or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from tfrfast import _native
from tfrfast._base.paths import absolute_path


@contextlib.contextmanager
def published(names: Sequence[str]) -> Iterator[list[str]]:
    """Temporary files that get these names at the end, or are removed after an exception."""
    for folder in {os.path.dirname(name) or "." for name in names}:
        os.makedirs(folder, exist_ok=True)
    temporary = [
        os.path.join(os.path.dirname(name), f".{os.path.basename(name)}.{os.getpid()}.tmp")
        for name in names
    ]
    try:
        yield temporary
        for name in temporary:
            with open(name, "rb") as file:
                os.fsync(file.fileno())
        for old, new in zip(temporary, names, strict=True):
            os.replace(old, new)
    finally:
        for name in temporary:
            with contextlib.suppress(FileNotFoundError):
                os.remove(name)


class Unpublished:
    """A hidden folder for new files, beside the places where they will appear."""

    def __init__(self, folder: str, names: Sequence[str], overwrite: bool) -> None:
        self.folder = folder
        self._names = names
        self._overwrite = overwrite

    def publish(self, written: Sequence[str]) -> None:
        """Gives files their names, in order: all of them, or none. Ctrl-C waits."""
        with ThreadPoolExecutor(1) as pool:
            pool.submit(self._publish, written).result()

    def _publish(self, written: Sequence[str]) -> None:
        published = []
        try:
            for path, name in zip(written, self._names, strict=True):
                _native.move_file(os.fsencode(path), os.fsencode(name), self._overwrite)
                published.append(name)
        except BaseException:
            # A file that replaced another cannot be taken back. A new one can.
            for name in [] if self._overwrite else published:
                os.unlink(name)
            raise


@contextlib.contextmanager
def unpublished(names: Sequence[str], overwrite: bool) -> Iterator[Unpublished]:
    """A folder for files that are to get these names. It is removed at the end."""
    folder, last = os.path.split(absolute_path(names[0]))
    work = os.path.join(folder, f".{last}-{secrets.token_hex(6)}.tfrfast")
    os.makedirs(work)
    try:
        yield Unpublished(work, names, overwrite)
    finally:
        shutil.rmtree(work, ignore_errors=True)
