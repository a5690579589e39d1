"""Finished files get their names: all of them, or none."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from tfrfast import _native

__all__ = ["ShardNames", "flush_folder", "give_names", "move", "remove", "uninterrupted"]

Result = TypeVar("Result")


def uninterrupted(work: Callable[[], Result]) -> Result:
    """What `work` returns. Ctrl-C waits until it has."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


def give_names(
    made: Sequence[str],
    names: Sequence[str],
    overwrite: bool,
    move: Callable[[str, str, bool], None],
    remove: Callable[[str], None],
) -> None:
    """Moves files to these names, in order. If one cannot be moved, none stays there.

    But a file that has replaced another cannot be taken back.
    """
    given = []
    try:
        for path, name in zip(made, names, strict=True):
            move(path, name, overwrite)
            given.append(name)
    except BaseException:
        for name in [] if overwrite else given:
            remove(name)
        raise


def move(path: str, name: str, overwrite: bool) -> None:
    """In one step, with the permissions of the file that it replaces."""
    with contextlib.suppress(FileNotFoundError):
        os.chmod(path, stat.S_IMODE(os.stat(name).st_mode))
    _native.move_file(os.fsencode(path), os.fsencode(name), overwrite)


def remove(name: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name)


class ShardNames:
    """Gives shards their names, and adds their indexes to those of the folder.

    `index_folder` is the folder that the user has chosen for indexes, empty for the usual place, or
    None without indexes.
    """

    def __init__(self, index_folder: bytes | None) -> None:
        self._index_folder = index_folder

    def move(
        self,
        shard: str,
        made: _native.MadeIndexes | None,
        final: str,
        overwrite: bool,
        *,
        again: bool = False,
    ) -> None:
        """`made` has the shard's index, if there are to be indexes.

        With `again`, it goes on where it was interrupted: what was moved may be.
        """
        if not (again and not os.path.exists(shard)):
            try:
                move(shard, final, overwrite)
            except FileExistsError:
                if not again or not os.path.samefile(shard, final):
                    raise
                os.unlink(shard)  # a second name of the shard that was moved
        if self._index_folder is not None and made is not None:
            made.add(os.path.basename(shard), self._index_folder, os.fsencode(final))

    def finish_folders(self, shards: Iterable[str], sync: bool) -> None:
        """Call this when all have their names."""
        folders = {os.path.dirname(shard) or "." for shard in shards}
        indexes = {self._folder_for(shard) for shard in shards} - {""}
        for folder in indexes:
            with contextlib.suppress(OSError):  # in parts it serves as well
                _native.compact_index(os.fsencode(folder))
        for folder in folders | indexes if sync else ():
            flush_folder(folder)

    def _folder_for(self, shard: str) -> str:
        if self._index_folder is None:
            return ""
        if self._index_folder:
            return os.fsdecode(self._index_folder)
        return _native.sibling_index_folder(os.fsencode(shard))


def flush_folder(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):  # some network filesystems cannot flush a folder
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
