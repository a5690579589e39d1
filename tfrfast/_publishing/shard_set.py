"""New shards of one prefix, which are written into a work folder and published together."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import stat
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tfrfast import _native
from tfrfast._base.paths import absolute_path, written_file
from tfrfast._native import move_file
from tfrfast._writing.options import Compression, FilePath, Index, core_options
from tfrfast.writer import Writer

__all__ = ["ShardSet", "Unpublished", "UnpublishedShard"]


class UnpublishedShard(Writer):
    """A finished shard and its index wait in the work folder until they are moved."""

    _collects_indexes = False


class Unpublished:
    """Where, and how, shards of a set are written before they are published. It can be pickled."""

    def __init__(self, folder: str, options: dict[str, Any]) -> None:
        self._folder = folder
        self._options = options

    def writer(self) -> Writer:
        """Of a shard with a name that no other has, not even one of the same records."""
        index = self._options["index"] is not False and os.path.join(self._folder, "index")
        path = os.path.join(self._folder, "shards", secrets.token_hex(8))
        return UnpublishedShard(path, **{**self._options, "index": index})


class ShardSet:
    """New shards `prefix-00000-of-00064` and so on. Use it as a context manager.

    Anyone, in any process that sees the folder, writes shards through `unpublished`. publish()
    gives some of them their names. The others, such as those of tasks that were run twice, are
    removed at the end. Raises what ShardedWriter raises.
    """

    def __init__(
        self,
        prefix: FilePath,
        *,
        num_shards: int | None,
        compression: Compression | None,
        level: int | None,
        index: Index,
        sync: bool,
        overwrite: bool,
    ) -> None:
        options = core_options(
            compression=compression, level=level, index=index, sync=sync, overwrite=overwrite
        )
        name = written_file(prefix)
        # It looks at the names and folders, and makes those that are missing.
        _native.ShardedWriter(name, num_shards=0, max_bytes=1, **options).abort()
        self._prefix = os.fsdecode(name)
        self._index_folder: bytes | None = options["index_folder"] if options["index"] else None
        if num_shards is not None:
            _native.check_shard_places(
                name, num_shards, self._index_folder is not None, self._index_folder or b""
            )
        self._sync = sync
        self._overwrite = overwrite
        folder, last = os.path.split(absolute_path(self._prefix))
        self._work = os.path.join(folder, f".{last}-{secrets.token_hex(6)}.tfrfast")
        self.unpublished = Unpublished(
            self._work,
            {"compression": compression, "level": level, "index": index, "sync": sync},
        )

    def __enter__(self) -> ShardSet:
        os.makedirs(os.path.join(self._work, "shards"))
        os.makedirs(os.path.join(self._work, "index"))
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._work, ignore_errors=True)

    def publish(self, written: Sequence[str]) -> list[str]:
        """Gives shards, by the paths they were written to, their names, in order.

        Unless the system fails meanwhile, all of them get their names or none does: Ctrl-C waits.
        """
        finals = [
            f"{self._prefix}-{number:05}-of-{len(written):05}" for number in range(len(written))
        ]
        with ThreadPoolExecutor(1) as pool:
            pool.submit(self._publish, written, finals).result()
        return finals

    def _publish(self, written: Sequence[str], finals: Sequence[str]) -> None:
        if not self._overwrite and (taken := _native.list_shards(os.fsencode(self._prefix))):
            raise FileExistsError(
                17, f"{taken[0]!r} has appeared while these shards were written", taken[0]
            )
        published = []
        try:
            for shard, final in zip(written, finals, strict=True):
                self._move(shard, final)
                published.append(final)
        except BaseException:
            # A file that replaced another cannot be taken back. A new one can.
            for final in [] if self._overwrite else published:
                self._remove(final)
            raise
        if self._overwrite:
            for path in set(_native.list_shards(os.fsencode(self._prefix))).difference(finals):
                self._remove(path)
        self._finish_folders(finals)

    def _move(self, shard: str, final: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.chmod(shard, stat.S_IMODE(os.stat(final).st_mode))
        index = os.fsencode(self._index_of(final))
        if index:
            made = os.path.join(self._work, "index", os.path.basename(shard) + ".index")
            os.makedirs(os.path.dirname(index), exist_ok=True)
            _native.move_loose_index(os.fsencode(made), index)
        move_file(os.fsencode(shard), os.fsencode(final), self._overwrite)
        if index:
            # The move changed the shard's ctime, which the index records.
            _native.stamp_index(index, os.fsencode(final))

    def _remove(self, final: str) -> None:
        for path in (final, self._index_of(final)):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)

    def _finish_folders(self, finals: Sequence[str]) -> None:
        indexes = {os.path.dirname(self._index_of(final)) for final in finals} - {""}
        if self._sync:
            for folder in {os.path.dirname(absolute_path(self._prefix)), *indexes}:
                _flush(folder)
        for folder in indexes:
            _native.collect_loose_indexes(os.fsencode(folder), only_if_many=False)

    def _index_of(self, final: str) -> str:
        """Empty if there are to be no indexes."""
        if self._index_folder is None:
            return ""
        if self._index_folder:
            return _native.index_path_in(self._index_folder, os.fsencode(final))
        return _native.sibling_index_path(os.fsencode(final))


def _flush(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):  # some network filesystems cannot flush a folder
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
