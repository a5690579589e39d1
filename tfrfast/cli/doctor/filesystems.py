"""The kind of a path's filesystem."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

__all__ = ["Filesystem", "Mounts"]

UNKNOWN = "unknown"


class Filesystem(NamedTuple):
    kind: str
    mounted_at: str


class Mounts:
    """The mounts of this process, as Linux lists them. On other systems every kind is unknown."""

    def __init__(self, listing: str | None = None) -> None:
        if listing is None:
            try:
                with open(
                    "/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape"
                ) as file:
                    listing = file.read()
            except OSError:
                listing = ""
        # A later mount at the same place hides the earlier mount.
        self._kinds: dict[str, str] = {}
        for line in listing.splitlines():
            before, _, after = line.partition(" - ")
            fields = before.split(" ")
            if len(fields) > 4 and after:
                self._kinds[_unescape(fields[4])] = after.split(" ")[0]

    def of(self, path: str) -> Filesystem:
        folder = os.path.realpath(path)
        while folder not in self._kinds:
            parent = os.path.dirname(folder)
            if parent == folder:
                return Filesystem(UNKNOWN, folder)
            folder = parent
        return Filesystem(self._kinds[folder], folder)


def _unescape(field: str) -> str:
    """Linux lists blanks and other special characters as octal numbers."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), field)
