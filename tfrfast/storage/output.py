"""The output of new shards: files of this machine, other storages, or objects."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

from tfrfast import _native
from tfrfast.storage.paths import written_file
from tfrfast.storage.remote.options import Storage, storage_of
from tfrfast.storage.remote.urls import is_object
from tfrfast.storage.schemes import is_url, is_writable

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


class StagedOutput(Output):
    """Shards that are made in a folder of this machine, and copied to URLs at the end.

    The folder is removed at the end, unless `keep` is called.
    """

    is_remote = True

    def __init__(
        self,
        url: str,
        index: bool,
        index_folder: bytes,
        sync: bool,
        overwrite: bool,
        folder: str | None,
    ) -> None:
        if index and not index_folder:
            _native.sibling_index_folder(os.fsencode(url))  # raises if no folder can lie there
        self._url = url
        self._published_in = index_folder
        self._syncs_copies = sync
        self._may_replace = overwrite
        self._folder = folder or tempfile.mkdtemp(prefix="tfrfast-upload-")
        # A forked child leaves the folder to its parent.
        self._removing = weakref.finalize(self, _remove, self._folder, os.getpid())
        path = shards_path(url, self._folder)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        super().__init__(path, index, b"", sync=False, overwrite=True)

    def name_of(self, path: str) -> str:
        return f"{self._url.rpartition('/')[0]}/{os.path.basename(path)}"

    def publish(self, paths: Sequence[str]) -> list[str]:
        made = None
        if self.index:
            made = _native.MadeIndexes(
                os.fsencode(_native.sibling_index_folder(os.fsencode(self.path)))
            )
        for path in paths:
            url = os.fsencode(self.name_of(path))
            _native.publish_copy(os.fsencode(path), url, self._syncs_copies, self._may_replace)
            if made is not None:
                made.add(os.path.basename(path), self._published_in, url)
        self.discard()
        return [self.name_of(path) for path in paths]

    def discard(self) -> None:
        self._removing()

    def keep(self) -> None:
        self._removing.detach()


def _remove(folder: str, process: int) -> None:
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


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
    num_shards: int = 0,
    folder: str | None = None,
) -> Output:
    """Returns the output for a path or a URL.

    Shards for objects, and shards of unknown number for other storages, are made in `folder`, or in
    a temporary folder. Raises ValueError for a name that cannot be written, and OSError if the
    storage cannot be reached.
    """
    if index_folder is not None and not index:
        raise ValueError("index=False makes no index. Leave out index_folder, or pass index=True.")
    into = b"" if index_folder is None else written_file(index_folder)
    reached = storage_of(storage)
    url = named_url(path)
    if is_object(url):
        from tfrfast.storage.remote.output import RemoteOutput

        return RemoteOutput(url, reached, index, into, overwrite, folder)
    if not is_writable(url):
        url = os.fsdecode(written_file(path))
    elif num_shards == 0:
        return StagedOutput(url, index, into, sync, overwrite, folder)
    return Output(url, index, into, sync, overwrite)
