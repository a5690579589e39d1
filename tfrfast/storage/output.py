"""Where new shards appear: the storage of their name says how."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from tfrfast.storage.paths import written_file
from tfrfast.storage.remote.options import Storage, storage_of
from tfrfast.storage.remote.urls import is_url

if TYPE_CHECKING:
    from tfrfast import _native

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


class Output:
    """Shards of this machine. Whoever writes them gives them their names and indexes at the end.

    `path`, a shard or the beginning of the names of shards, is what to write to, with `index`,
    `sync` and `overwrite`. Afterwards call `publish`, or else `discard`. Both may be called again.
    """

    is_remote = False

    def __init__(self, path: str, index: Any, sync: bool, overwrite: bool) -> None:
        self.path = path
        self.index = index
        self.sync = sync
        self.overwrite = overwrite

    @property
    def parts(self) -> _native.OutgoingParts | None:
        """Where a writer puts the parts of shards; None if it writes whole files."""
        return None

    def refuse_taken(self, prefixes: Sequence[str] = ()) -> None:
        """Raises FileExistsError if there are shards that may not be replaced.

        These are shards with these beginnings of their names, or else the one shard. Here those who
        write them look.
        """

    def advised(self, call: Callable[Arguments, Answer]) -> Callable[Arguments, Answer]:
        """The same call, whose errors say what to do about them."""
        return call

    def name_of(self, path: str) -> str:
        """The name under which what is written to a path appears."""
        return path

    def publish(self, paths: Sequence[str]) -> list[str]:
        """Makes the shards that were written appear, and returns their names. Raises OSError."""
        return list(paths)

    def discard(self) -> None:
        """Removes what has not appeared. It never will."""

    def keep(self) -> None:
        """Leaves what was written to a later call. Nothing appears."""


def named_url(path: object) -> str:
    """The URL that a name is; empty for a path of this machine."""
    name = os.fsdecode(path) if isinstance(path, (str, bytes, os.PathLike)) else ""
    return name if is_url(name) and not os.path.lexists(name) else ""


def shards_path(url: str, folder: str) -> str:
    """What is written in that folder instead of a URL."""
    return os.path.join(folder, "shards", url.rpartition("/")[2])


def open_output(
    path: Any,
    storage: Mapping[str, Any] | Storage | None,
    *,
    index: Any,
    sync: bool,
    overwrite: bool,
    num_shards: int = 0,
    folder: str | None = None,
) -> Output:
    """What is written to a path or a URL.

    Shards that go to URLs are uploaded while they are written if their number is known. `folder` is
    where they are made; without it, a temporary folder is. Raises ValueError for what cannot be
    written, and OSError if the storage cannot be reached.
    """
    reached = storage_of(storage)
    if url := named_url(path):
        from tfrfast.storage.remote.output import RemoteOutput

        return RemoteOutput(url, reached, index, overwrite, folder, num_shards)
    return Output(os.fsdecode(written_file(path)), index, sync, overwrite)
