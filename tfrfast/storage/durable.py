"""Writes files in one step, and waits until their names are on the disk."""

from __future__ import annotations

import contextlib
import os

__all__ = ["flush_folder", "replace_file"]


def replace_file(path: str, content: bytes, *, sync: bool, mode: int | None = None) -> None:
    """Writes a file that appears whole, in place of an old one.

    A kill leaves the old or the new file. With `sync`, a power cut does, too: the bytes are on the
    disk before the file gets its name.
    """
    with open(path + ".new", "wb") as file:
        if mode is not None:
            with contextlib.suppress(OSError):  # some filesystems have no permissions
                os.fchmod(file.fileno(), mode)
        file.write(content)
        if sync:
            file.flush()
            os.fsync(file.fileno())
    os.replace(path + ".new", path)


def flush_folder(folder: str) -> None:
    """Waits until the names in the folder are on the disk."""
    descriptor = os.open(folder or os.curdir, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):  # some network filesystems cannot flush a folder
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
