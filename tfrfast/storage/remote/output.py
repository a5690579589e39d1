"""Shards that are written to URLs by way of a folder of this machine."""

from __future__ import annotations

import errno
import glob
import os
import re
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ParamSpec, TypeVar

from tfrfast import _native
from tfrfast.base import termination
from tfrfast.base.warning import warn
from tfrfast.storage.output import Output, shards_path
from tfrfast.storage.paths import reach
from tfrfast.storage.remote import objects, uploads
from tfrfast.storage.remote.listing import find_objects
from tfrfast.storage.remote.options import Storage
from tfrfast.storage.remote.publishing import place_of, publish_indexes

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")

_FULL = (errno.ENOSPC, errno.EDQUOT)
_LARGER_DISK = (
    "That disk needs space for all shards, which are uploaded at the end. Let TMPDIR name a folder "
    "on a larger disk"
)
_SHARD = re.compile(r"-\d{5,}-of-\d{5,}")


class RemoteOutput(Output):
    """Shards that appear under URLs, and are made in a folder of this machine.

    The folder holds all shards, and is removed at the end, unless `keep` is called, or the upload
    has failed.
    """

    is_remote = True

    def __init__(
        self,
        url: str,
        storage: Storage,
        index: bool,
        index_folder: bytes,
        overwrite: bool,
        folder: str | None,
    ) -> None:
        objects.check_writable(url)
        if index and not index_folder:
            place_of(url)
        reach([url], storage)
        self._url = url
        self._access = storage.access
        self._published_in = index_folder
        self._may_replace = overwrite
        self._prefixes: Sequence[str] = ()
        folder = folder or tempfile.mkdtemp(prefix="tfrfast-upload-")
        # A forked child leaves the folder to its parent.
        self._removing = weakref.finalize(self, _remove, folder, os.getpid())
        path = shards_path(url, folder)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        super().__init__(path, index, b"", sync=False, overwrite=True)
        self._ending = threading.Lock()
        self._is_ended = False
        termination.begin()
        self._terminating = weakref.finalize(self, termination.end)

    def name_of(self, path: str) -> str:
        return f"{self._url.rpartition('/')[0]}/{os.path.basename(path)}"

    def advised(self, call: Callable[Arguments, Answer]) -> Callable[Arguments, Answer]:
        """Returns the call. Its error about a full disk names the cause and the remedy."""

        def advised_call(*arguments: Arguments.args, **options: Arguments.kwargs) -> Answer:
            try:
                return call(*arguments, **options)
            except OSError as error:
                if error.errno not in _FULL:
                    raise
                raise _with_advice(error, _LARGER_DISK) from None

        return advised_call

    def refuse_taken(self, prefixes: Sequence[str] = ()) -> None:
        self._prefixes = prefixes
        if self._may_replace:
            return
        if prefixes and (taken := self._others([])):
            raise FileExistsError(
                17,
                f"There are {len(taken)} shards named like {taken[0]!r}. Choose another name, or "
                "pass overwrite=True to replace all of them",
                taken[0],
            )
        if not prefixes and objects.is_there(self._url, self._access):
            raise FileExistsError(
                17, f"{self._url!r} exists. Pass overwrite=True to replace it", self._url
            )

    def publish(self, paths: Sequence[str]) -> list[str]:
        """Uploads the shards, then the index that lists them.

        After an early end for any reason, the shards are kept, and the error names their folder.
        Further calls wait for the first call.
        """
        with self._ending:
            if not self._is_ended:
                self._is_ended = True
                try:
                    self._publish({self.name_of(path): path for path in paths})
                finally:
                    self._terminating()
        return [self.name_of(path) for path in paths]

    def _publish(self, files: Mapping[str, str]) -> None:
        try:
            self.refuse_taken(self._prefixes)
            uploads.upload_files(dict(files), self._access)
            self._publish_indexes(files)
            if self._prefixes and self._may_replace:
                objects.remove_objects(self._others(files), self._access)
        except BaseException as error:
            self._removing.detach()
            kept = (
                f"All shards are complete in {os.path.dirname(self.path)!r}: upload them, or "
                "remove that folder"
            )
            if not isinstance(error, (KeyboardInterrupt, OSError)):
                warn(f"{kept}.")
            raise _with_advice(error, kept, self._url) from None
        self.discard()

    def _publish_indexes(self, files: Mapping[str, str]) -> None:
        if not self.index:
            return
        if not self._published_in:
            publish_indexes(files, self._access)
            return
        os.makedirs(self._published_in, exist_ok=True)
        for url, path in files.items():
            _native.index_object(url, self._access, os.fsencode(path), self._published_in, True)

    def discard(self) -> None:
        self._is_ended = True
        self._removing()
        self._terminating()

    def keep(self) -> None:
        self._is_ended = True
        self._removing.detach()
        self._terminating()

    def _others(self, mine: Iterable[str]) -> list[str]:
        """Returns other shards with the prefixes, of any number."""
        others = set()
        for prefix in map(self.name_of, self._prefixes):
            for url in find_objects(glob.escape(prefix) + "-*-of-*", self._access):
                if _SHARD.fullmatch(url[len(prefix) :]):
                    others.add(url)
        return sorted(others.difference(mine))


def _remove(folder: str, process: int) -> None:
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


def _with_advice(error: BaseException, advice: str, name: str | None = None) -> BaseException:
    """Returns the same error with advice."""
    if isinstance(error, KeyboardInterrupt):
        return KeyboardInterrupt(f"Uploading was interrupted. {advice}.")
    if isinstance(error, OSError):
        text = f"{str(error.strerror).rstrip('.')}. {advice}"
        return type(error)(error.errno, text, error.filename or name)
    return error
