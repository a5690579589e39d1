"""New shards of one prefix. They are written into a work folder and published together."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from typing import Any

from tfrfast import _native
from tfrfast.storage.output import Output
from tfrfast.writing.options import Compression, core_options
from tfrfast.writing.publishing import Indexes, publish, shard_name
from tfrfast.writing.work_folder import WorkFolder
from tfrfast.writing.writer import Writer

__all__ = ["ShardSet", "Unpublished"]


class Unpublished:
    """The work folder and the options of unpublished shards. Can be pickled.

    The folder, which may be a URL if `index` is False, has folders `shards` and `index`.
    """

    def __init__(self, folder: str, *, index: bool, **options: Any) -> None:
        self._folder = folder
        #: The folder of the shards' indexes, or None.
        self.index_folder = os.path.join(folder, "index") if index else None
        self._options = options

    @classmethod
    def in_work_folder(cls, work: WorkFolder, *, index: bool, **options: Any) -> Unpublished:
        os.makedirs(work.inside("shards"))
        os.makedirs(work.inside("index"))
        return cls(work.path, index=index, **options)

    def path(self, name: str) -> str:
        """Returns the path of a shard with this name."""
        return os.path.join(self._folder, "shards", name)

    def writer(self) -> Writer:
        """Returns a writer of a new shard. The name is unique, even if a task runs twice."""
        path = self.path(secrets.token_hex(8))
        has_index = self.index_folder is not None
        return Writer(path, index=has_index, index_folder=self.index_folder, **self._options)


class ShardSet:
    """New shards `prefix-00000-of-00064` and so on. Use it as a context manager.

    Any process that sees the folder writes shards through `unpublished`. publish() gives chosen
    shards their names. The other shards, for example of tasks that ran twice, are removed at the
    end. Raises the errors of ShardedWriter.
    """

    unpublished: Unpublished

    def __init__(
        self,
        output: Output,
        *,
        num_shards: int | None,
        compression: Compression | None,
        level: int | None,
    ) -> None:
        options = core_options(output, compression, level)
        name, index, folder = os.fsencode(output.path), options["index"], options["index_folder"]
        # The writer checks the names and makes missing folders.
        probe = _native.ShardedWriter(name, num_shards=0, max_bytes=1, **options)
        try:
            if num_shards is not None:
                _native.check_shard_places(name, num_shards, index, folder)
        finally:
            probe.abort()
        self._output = output
        self._work = WorkFolder(output.path)
        self._indexes = Indexes(self._work.inside("index"), folder) if index else None
        self._options = {"compression": compression, "level": level, "sync": output.sync}

    def __enter__(self) -> ShardSet:
        self._work.__enter__()
        self.unpublished = Unpublished.in_work_folder(
            self._work, index=self._indexes is not None, **self._options
        )
        return self

    def __exit__(self, *error: object) -> None:
        self._work.__exit__(*error)

    def publish(self, written: Sequence[str]) -> list[str]:
        """Gives the shards at the paths `written` their names, in order. Returns the names.

        Unless the system fails meanwhile, all shards get their names or none does: Ctrl-C takes
        effect afterwards.
        """
        prefix, overwrite = self._output.path, self._output.overwrite
        taken = _native.list_shards(os.fsencode(prefix))
        if taken and not overwrite:
            raise FileExistsError(
                17, f"{taken[0]!r} has appeared while these shards were written", taken[0]
            )
        names = [shard_name(prefix, number, len(written)) for number in range(len(written))]
        publish(
            written,
            names,
            overwrite=overwrite,
            others=taken,
            indexes=self._indexes,
            sync=self._output.sync,
        )
        return names
