"""The place of a data set's folder: on this machine, or behind a URL."""

from __future__ import annotations

import contextlib
import glob
import os
import stat
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

from tfrfast import _native
from tfrfast.errors import StaleIndexError
from tfrfast.storage.paths import reach, read_name
from tfrfast.storage.remote.options import Storage
from tfrfast.storage.remote.urls import has_listing
from tfrfast.storage.schemes import is_url

__all__ = ["Place", "place_of"]

#: The ending of the names of index folders.
_INDEXES = ".tfrfast"
_MAX_BYTES = 16 << 20
#: The number of reads of a file that other processes keep replacing.
_ATTEMPTS = 10


class Place(Protocol):
    """A folder of files. An unreadable file raises OSError."""

    name: str
    """The folder's path or URL."""

    def path_of(self, file: str) -> str:
        """Returns the path or URL of a file in the folder."""

    def read(self, file: str) -> bytes | None:
        """Returns all bytes of a small file in the folder, or None if the file does not exist.

        Raises ValueError if the name is not a file, but a pipe for example, and for more than 16
        MiB.
        """

    def folders_below(self, file: str) -> list[str]:
        """Returns the subfolders that have the file, or may have it."""


def place_of(folder: str | os.PathLike[str], storage: Storage) -> Place:
    """Raises TypeError or ValueError if the argument cannot be a folder."""
    name = read_name(folder)
    return _Remote(name, storage) if is_url(name) else _Local(name)


def _small(name: str, content: bytes) -> bytes:
    if len(content) > _MAX_BYTES:
        raise ValueError(
            f"{name!r} has more than {_MAX_BYTES >> 20} MiB, which no data set needs to describe "
            "itself. It is not read."
        )
    return content


class _Local:
    def __init__(self, folder: str) -> None:
        self._path = Path(os.path.expanduser(folder))
        self.name = str(self._path)

    def path_of(self, file: str) -> str:
        return os.path.join(self.name, file)

    def read(self, file: str) -> bytes | None:
        path = self.path_of(file)
        try:
            # Opening a pipe would wait for a writer.
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            return None
        with open(descriptor, "rb") as opened:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise ValueError(f"{path!r} is not a regular file, so it cannot be read as JSON.")
            return _small(path, opened.read(_MAX_BYTES + 1))

    def folders_below(self, file: str) -> list[str]:
        found = [*self._path.glob(f"*/{file}"), *self._path.glob(f"*/*/{file}")]
        return sorted(str(each.parent) for each in found)


class _Remote:
    def __init__(self, url: str, storage: Storage) -> None:
        self.name = url.rstrip("/")
        self._storage = storage

    def path_of(self, file: str) -> str:
        quoted = f"{self.name}/{quote(file)}"
        if not has_listing(quoted):
            return quoted
        url = f"{self.name}/{file}"
        if glob.has_magic(url):
            raise ValueError(f"{url!r} is a pattern, and tfr.tfds reads the folder of one version.")
        return url

    def read(self, file: str) -> bytes | None:
        url = self.path_of(file)
        reach([url], self._storage)
        try:
            return _small(url, self._read(url, _ATTEMPTS))
        except FileNotFoundError:
            return None

    def _read(self, url: str, attempts: int) -> bytes:
        try:
            return _native.read_beginning(os.fsencode(url), self._storage.core, _MAX_BYTES + 1)
        except StaleIndexError:  # the file was replaced while it was read
            if attempts == 1:
                raise
        return self._read(url, attempts - 1)

    def folders_below(self, file: str) -> list[str]:
        from tfrfast.storage.remote.listing import find_folders

        url = self.path_of(file)
        if not has_listing(url):
            return []
        with contextlib.suppress(OSError):  # a readable folder may refuse to be listed
            found = find_folders(url, self._storage.access)
            return [each for each in found if not each.endswith(_INDEXES)]
        return []
