"""The output of new shards: files of this machine, or objects."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

from tfrfast.storage.paths import written_file
from tfrfast.storage.remote.options import Storage, storage_of
from tfrfast.storage.schemes import is_url

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


class Output:
    """Shards that the core publishes: the writer itself gives them names and indexes at the end.

    Write to `path`, a shard or a prefix of shards, with the other attributes. Then call `publish`
    or `discard`. Both may be called again.
    """

    is_remote = False

    def __init__(
        self, path: str, index: bool, index_folder: bytes, sync: bool, overwrite: bool
    ) -> None:
        self.path = path
        self.index = index
        #: Empty for the sibling folder.
        self.index_folder = index_folder
        self.sync = sync
        self.overwrite = overwrite

    def refuse_taken(self, prefixes: Sequence[str] = ()) -> None:
        """Raises FileExistsError if there are shards that may not be replaced.

        Checks shards with these prefixes, or the one shard. Does nothing where the writer checks.
        """

    def advised(self, call: Callable[Arguments, Answer]) -> Callable[Arguments, Answer]:
        """Returns the same call, with advice in its errors."""
        return call

    def name_of(self, path: str) -> str:
        """Returns the published name of a shard that is written to `path`."""
        return path

    def publish(self, paths: Sequence[str]) -> list[str]:
        """Publishes the written shards, and returns their names. Raises OSError."""
        return list(paths)

    def discard(self) -> None:
        """Removes the shards that are not published."""

    def keep(self) -> None:
        """Keeps the written files for a later call. Publishes nothing."""


def named_url(path: object) -> str:
    """Returns the name if it is a URL; empty for a path of this machine."""
    name = os.fsdecode(path) if isinstance(path, (str, bytes, os.PathLike)) else ""
    return name if is_url(name) and not os.path.lexists(name) else ""


def shards_path(url: str, folder: str) -> str:
    """Returns the path in that folder to write to instead of a URL."""
    return os.path.join(folder, "shards", url.rpartition("/")[2])


def open_output(
    path: Any,
    storage: Mapping[str, Any] | Storage | None,
    *,
    index: bool,
    index_folder: str | os.PathLike[str] | None,
    sync: bool,
    overwrite: bool,
    folder: str | None = None,
) -> Output:
    """Returns the output for a path or a URL.

    Shards for URLs are made in `folder`, or in a temporary folder. Raises ValueError for a name
    that cannot be written, and OSError if the storage cannot be reached.
    """
    if index_folder is not None and not index:
        raise ValueError("index=False makes no index. Leave out index_folder, or pass index=True.")
    into = b"" if index_folder is None else written_file(index_folder)
    reached = storage_of(storage)
    if url := named_url(path):
        from tfrfast.storage.remote.output import RemoteOutput

        return RemoteOutput(url, reached, index, into, overwrite, folder)
    name = _from_here(os.fsdecode(written_file(path)))
    return Output(name, index, os.fsencode(_from_here(os.fsdecode(into))), sync, overwrite)


def _from_here(name: str) -> str:
    """Returns a name that fits in any folder, where the program may go before shards get names."""
    return name if not name or os.path.isabs(name) else os.path.join(os.getcwd(), name)
