"""New shards of one prefix, which are written into a work folder and published together."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from typing import Any

from tfrfast import _native
from tfrfast.storage.output import Output
from tfrfast.writing.options import Compression, core_options
from tfrfast.writing.shard_names import ShardNames, give_names, remove, uninterrupted
from tfrfast.writing.work_folder import WorkFolder
from tfrfast.writing.writer import Writer

__all__ = ["ShardSet", "Unpublished"]


class Unpublished:
    """Where, and how, shards of a set are written before they are published. It can be pickled."""

    def __init__(self, folder: str, options: dict[str, Any]) -> None:
        self._folder = folder
        self._options = options

    def writer(self) -> Writer:
        """Of a shard with a name that no other has, not even one of the same records."""
        index = self._options["index"] is not False and os.path.join(self._folder, "index")
        path = os.path.join(self._folder, "shards", secrets.token_hex(8))
        return Writer(path, **{**self._options, "index": index})


class ShardSet:
    """New shards `prefix-00000-of-00064` and so on. Use it as a context manager.

    Anyone, in any process that sees the folder, writes shards through `unpublished`. publish()
    gives some of them their names. The others, such as those of tasks that were run twice, are
    removed at the end. Raises what ShardedWriter raises.
    """

    def __init__(
        self,
        output: Output,
        *,
        num_shards: int | None,
        compression: Compression | None,
        level: int | None,
    ) -> None:
        options = core_options(
            compression=compression,
            level=level,
            index=output.index,
            sync=output.sync,
            overwrite=output.overwrite,
        )
        self._prefix = output.path
        name = os.fsencode(output.path)
        index_folder: bytes | None = options["index_folder"] if options["index"] else None
        # It looks at the names and folders, and makes those that are missing.
        looking = _native.ShardedWriter(name, num_shards=0, max_bytes=1, **options)
        try:
            if num_shards is not None:
                _native.check_shard_places(
                    name, num_shards, options["index"], options["index_folder"]
                )
        finally:
            looking.abort()
        self._sync = output.sync
        self._overwrite = output.overwrite
        self._work = WorkFolder(self._prefix)
        self._names = ShardNames(index_folder)
        self.unpublished = Unpublished(
            self._work.path,
            {
                "compression": compression,
                "level": level,
                "index": output.index,
                "sync": output.sync,
            },
        )

    def __enter__(self) -> ShardSet:
        self._work.__enter__()
        os.makedirs(self._work.inside("shards"))
        os.makedirs(self._work.inside("index"))
        return self

    def __exit__(self, *error: object) -> None:
        self._work.__exit__(*error)

    def publish(self, written: Sequence[str]) -> list[str]:
        """Gives shards, by the paths they were written to, their names, in order.

        Unless the system fails meanwhile, all of them get their names or none does: Ctrl-C waits.
        """
        finals = [
            f"{self._prefix}-{number:05}-of-{len(written):05}" for number in range(len(written))
        ]
        uninterrupted(lambda: self._publish(written, finals))
        return finals

    def _publish(self, written: Sequence[str], finals: Sequence[str]) -> None:
        taken = _native.list_shards(os.fsencode(self._prefix))
        if taken and not self._overwrite:
            raise FileExistsError(
                17, f"{taken[0]!r} has appeared while these shards were written", taken[0]
            )
        made = _native.MadeIndexes(os.fsencode(self._work.inside("index")))

        def move(shard: str, final: str, overwrite: bool) -> None:
            self._names.move(shard, made, final, overwrite)

        give_names(written, finals, self._overwrite, move, remove)
        for path in set(taken).difference(finals):
            remove(path)
        self._names.finish_folders(finals, self._sync)
