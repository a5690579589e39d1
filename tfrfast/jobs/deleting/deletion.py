"""An unfinished deletion, from its journal beside the shards: what is to go, and what is done."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from tfrfast import _native
from tfrfast.base.arguments import Int64Array
from tfrfast.base.sizes import counted
from tfrfast.errors import StaleIndexError
from tfrfast.storage.journal import Journal
from tfrfast.storage.schemes import is_url
from tfrfast.writing.work_folder import clear

__all__ = ["FOLDER", "Deletion", "ShardLosses", "unfinished_deletions", "version_of"]

#: The hidden folder of a folder's deletion. It holds the lock, the journal, and unfinished shards.
FOLDER = ".delete.tfrfast"
_VERSION = 2


def version_of(path: str) -> list[int]:
    """Returns facts that change with a file's content, if the filesystem can be trusted."""
    facts = os.stat(path)
    identity = (
        [facts.st_ino, facts.st_ctime_ns] if _native.identity_lasts(os.fsencode(path)) else []
    )
    return [facts.st_size, facts.st_mtime_ns, *identity]


class ShardLosses(NamedTuple):
    """A shard that loses records."""

    #: The name that the user has given. It may be a link.
    given: str
    #: The file's name in the folder.
    name: str
    version: list[int]
    num_records: int
    #: The numbers in the shard of the records to go, ascending.
    gone: Int64Array


class Deletion:
    """A deletion that may be interrupted at any point.

    The folder's lock must be held, except to load a deletion in order to describe it. Once begin()
    has returned, a power cut cannot undo the journal.
    """

    def __init__(self, journal: Journal, facts: dict[str, Any], replaced: list[Any]) -> None:
        if facts["version"] != _VERSION:
            raise ValueError
        self.journal = journal
        #: The folder of the shards.
        self.beside = os.path.dirname(journal.folder)
        #: A hash of what was asked for.
        self.request: str = facts["request"]
        self.on_corruption: str = facts["on_corruption"]
        #: The whole set, also if its folder has moved since.
        places = [os.path.join(self.beside, name) for name in facts["names"]]
        self.paths = [
            given if os.path.realpath(given) == place else place
            for given, place in zip(facts["paths"], places, strict=True)
        ]
        #: The features of its key files.
        self.features: list[str] = facts["features"]
        #: Where their indexes and key files lie, and a cache of inflated bytes; None: nowhere else.
        self.index_folder: str | None = facts["index_folder"]
        self.cache_folder: str | None = facts["cache_folder"]
        now = dict(zip(facts["paths"], self.paths, strict=True))
        self.shards = [
            ShardLosses(now[given], name, version, count, _numbers_of(gone))
            for given, name, version, count, gone in facts["shards"]
        ]
        #: The versions of new shards, by the shard's number. The last one may have no name yet.
        self.replaced: dict[int, list[int]] = dict(replaced)

    @classmethod
    def begin(cls, folder: str, facts: dict[str, Any], shards: list[ShardLosses]) -> Deletion:
        """Writes the journal."""
        listed = [[*each[:-1], _text_of(each.gone)] for each in shards]
        journal = Journal(folder)
        facts = {"version": _VERSION, **facts, "shards": listed}
        journal.begin(facts)
        return cls(journal, facts, [])

    @classmethod
    def load(cls, folder: str) -> Deletion | None:
        """Returns the unfinished deletion, or None. Raises ValueError if its journal is damaged."""
        journal = Journal(folder)
        try:
            facts = journal.read()
            return cls(journal, facts[0], facts[1:]) if facts else None
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"The journal of a deletion in {folder!r} is damaged, or of a newer tfrfast. Every "
                "shard is whole, with its old records or without those that were to go. Remove "
                "that folder to give the deletion up."
            ) from error

    def path(self, number: int) -> str:
        """Returns the file of a shard, links followed."""
        return os.path.join(self.beside, self.shards[number].name)

    def left(self) -> list[int]:
        """Returns the numbers of the shards that still hold records to go.

        Raises StaleIndexError for a shard that someone else has changed, because the numbers of its
        records may mean others now.
        """
        return [number for number in range(len(self.shards)) if not self._is_done(number)]

    def _is_done(self, number: int) -> bool:
        path = self.path(number)
        now = version_of(path) if os.path.exists(path) else None
        if now == self.shards[number].version:
            return False
        if now is not None and number in self.replaced and now[:3] == self.replaced[number][:3]:
            return True
        raise StaleIndexError(
            f"{path!r} was changed or removed while a deletion of "
            f"{counted(len(self.shards[number].gone), 'records')} in it was unfinished, so nobody "
            f"knows which they are now. Remove {self.journal.folder!r} to give the deletion up, "
            "look at the shard, and delete again.",
            path=path,
        )

    def add(self, number: int, made: str) -> None:
        """Notes that `made` will replace the shard. Call it before."""
        version = version_of(made)
        self.journal.add([number, version])
        self.replaced[number] = version

    def end(self) -> None:
        """Removes the journal, whose work is done or given up, and everything beside it."""
        self.journal.end()
        clear(self.journal.folder)

    def __str__(self) -> str:
        gone = counted(sum(len(shard.gone) for shard in self.shards), "records")
        return (
            f"A deletion of {gone} in {counted(len(self.shards), 'shards')} of "
            f"{self.beside!r} is unfinished"
        )


def _text_of(numbers: Int64Array) -> str:
    return base64.b64encode(numbers.astype("<i8").tobytes()).decode()


def _numbers_of(text: str) -> Int64Array:
    return np.frombuffer(base64.b64decode(text), "<i8").astype(np.int64)


def unfinished_deletions(paths: Iterable[str]) -> Iterator[str]:
    """Yields a sentence for each unfinished deletion in shards with these names."""
    folders: dict[str, set[str]] = {}
    for path in paths:
        if not is_url(path):
            folder, name = os.path.split(os.path.realpath(path))
            folders.setdefault(folder, set()).add(name)
    for folder, names in folders.items():
        try:
            deletion = Deletion.load(os.path.join(folder, FOLDER))
        except (OSError, ValueError) as error:
            yield str(error)
            continue
        if deletion is not None and not names.isdisjoint(each.name for each in deletion.shards):
            yield (
                f"{deletion}: it runs now, or was interrupted. `tfrfast delete --finish` with "
                "these shards goes on."
            )
