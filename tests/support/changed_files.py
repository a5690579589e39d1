"""Ways to replace or rewrite the file of a shard."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

Change = Callable[[Path, bytes], None]


def rewrite(path: Path, data: bytes) -> None:
    with open(path, "r+b") as file:
        file.write(data)
        file.truncate()


def replace(path: Path, data: bytes) -> None:
    other = path.with_name("other")
    other.write_bytes(data)
    os.replace(other, path)


def with_old_mtime(change: Change) -> Change:
    """Returns the change, followed by a restoration of the modification time."""

    def changed(path: Path, data: bytes) -> None:
        times = os.stat(path)
        change(path, data)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    return changed
