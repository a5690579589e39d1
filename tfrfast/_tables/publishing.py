"""Files that appear under their names when they are complete, or not at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence


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
