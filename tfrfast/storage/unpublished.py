"""Shards of an append that is not published yet: they have names, and no pattern finds them."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Sequence

from tfrfast.storage.journal import Journal

__all__ = ["Appends", "append_folder", "facts_of", "unpublished_by"]

_APPENDING = re.compile(r"\..*-append\.tfrfast", re.DOTALL)


def append_folder(prefix: str) -> str:
    """Returns the folder of the writer that appends to the shards of this prefix.

    Its journal has the names that the new shards get, and facts of their files. While the journal
    exists, the shards are not published, even if all have their names.
    """
    folder, last = os.path.split(prefix)
    return os.path.join(folder, f".{last}-append.tfrfast")


def facts_of(path: str) -> list[int]:
    """Returns facts of a file that a new name does not change."""
    facts = os.stat(path)
    return [facts.st_size, facts.st_mtime_ns, facts.st_ino, facts.st_uid]


def unpublished_by(folder: str, found: Iterable[str]) -> set[str]:
    """Returns the names of the shards that the writer with this hidden folder has not published.

    A journal speaks only of files beside it, and of files of its owner, because in a shared folder
    it may come from a stranger. Raises PermissionError for one that cannot be read, and ValueError
    for a damaged one, if its owner has shards of the set among the `found` paths.
    """
    journal = Journal(folder)
    beside = os.path.dirname(folder)
    names = set()
    try:
        for listed in journal.read():
            for name, facts in listed.items():
                if os.path.basename(name) == name:
                    with contextlib.suppress(FileNotFoundError):  # it has no name yet
                        now = facts_of(os.path.join(beside, name))
                        if now == facts and now[-1] == journal.owner:
                            names.add(name)
    except (OSError, ValueError, AttributeError) as error:
        if not _has_shards_of(folder, journal.owner, found):
            return set()
        kind = PermissionError if isinstance(error, PermissionError) else ValueError
        raise kind(
            f"{journal.path!r}, of an unfinished append, cannot be read, or is damaged: {error}. "
            "If it is whole, the next append of its owner ends it. Otherwise remove it, and those "
            "of the last shards of the set that its writer made."
        ) from None
    return names


def _has_shards_of(folder: str, owner: int | None, found: Iterable[str]) -> bool:
    """True if the owner of this hidden folder, or of its journal, has shards of its set."""
    beside = os.path.dirname(folder)
    prefix = os.path.basename(folder)[1:].removesuffix("append.tfrfast")
    for name in map(os.path.basename, found):
        if name.startswith(prefix):
            with contextlib.suppress(FileNotFoundError):
                mine = os.lstat(folder).st_uid if owner is None else owner
                if os.lstat(os.path.join(beside, name)).st_uid == mine:
                    return True
    return False


class Appends:
    """The unfinished appends in a folder, at one moment."""

    def __init__(self, folder: str) -> None:
        self._folder = folder or os.curdir
        self._writers: list[str] = []
        self._changed = _changed(self._folder)
        # A folder that may not be listed fails where its shards are listed.
        with contextlib.suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            names = os.listdir(self._folder)
            hidden = [each for each in names if each[0] == "." and _APPENDING.fullmatch(each)]
            self._writers = [os.path.join(folder, each) for each in hidden]
        self._journals = self._look()

    def _look(self) -> list[object]:
        return [_changed(Journal(writer).path) for writer in self._writers]

    def unpublished(self, found: Sequence[str]) -> set[str]:
        """Returns the names of all unpublished shards, which may be among the `found` paths."""
        return {name for writer in self._writers for name in unpublished_by(writer, found)}

    def are_as_before(self) -> bool:
        """False if an append was begun or published since, of which a listing may show a part."""
        return self._changed == _changed(self._folder) and self._journals == self._look()


def _changed(path: str) -> tuple[int, int] | None:
    with contextlib.suppress(OSError):
        facts = os.stat(path)
        return facts.st_ino, facts.st_mtime_ns
    return None
