"""Writes shards that appear under their names when complete."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex

from tfrfast import _native
from tfrfast.base.arguments import integer
from tfrfast.base.refused_arguments import explains_arguments
from tfrfast.base.warning import core_warnings
from tfrfast.columns import Bytes
from tfrfast.columns.arrow_nodes import exports_arrow
from tfrfast.example.encoding import ArrowTable, encode_example, encoded_table
from tfrfast.storage.output import Output, open_output
from tfrfast.storage.remote.options import Storage
from tfrfast.writing.appending import appended_compression, open_set
from tfrfast.writing.options import Compression, FilePath, IndexFolder, core_options

if TYPE_CHECKING:
    from typing_extensions import Buffer, Self


class _ShardWriter:
    """The common part of both writers."""

    _core: _native.Writer | _native.ShardedWriter
    _output: Output
    #: The core's function, bound once because it is called often.
    _write: Callable[[Buffer], None]

    def _begin(
        self,
        core: Callable[..., _native.Writer | _native.ShardedWriter],
        output: Output,
        options: dict[str, Any],
        prefixes: Sequence[str] = (),
    ) -> None:
        """Raises OSError if the shards cannot be made, or exist and must not be replaced."""
        output.refuse_taken(prefixes)
        self._output = output
        self._core = core(os.fsencode(output.path), **options)
        self._write = output.advised(self._core.write)

    def write(self, record: Buffer) -> None:
        """Adds one record: bytes, or a buffer of them."""
        self._write(record)

    @explains_arguments
    def write_example(self, features: Mapping[str, Any]) -> None:
        """Adds one tf.train.Example, encoded as by `tfr.encode_example`."""
        self._write(encode_example(features))

    @explains_arguments
    def write_batch(self, records: _native.RecordBatch | Iterable[Buffer] | ArrowTable) -> None:
        """Adds many records: a RecordBatch, whose padding is left out, or any iterable of bytes.

        Tables of Polars, PyArrow and others become Examples, as by `tfr.encode_examples`.
        """
        if isinstance(records, (_native.RecordBatch, list, Bytes)) or not exports_arrow(records):
            self._output.advised(self._core.write_batch)(records)  # type: ignore[arg-type]
            return
        for batch in encoded_table(records):  # type: ignore[arg-type]
            self._output.advised(self._core.write_batch)(batch)

    def close(self) -> None:
        """Completes and publishes all shards. Further calls do nothing."""
        if self.closed:
            return
        try:
            with core_warnings():
                self._output.advised(self._core.close)()
        except BaseException:
            self._output.discard()
            raise
        self._output.publish(self._core.paths())

    def abort(self) -> None:
        """Publishes nothing, and discards all records."""
        self._core.abort()
        self._output.discard()

    def _paths(self) -> list[str]:
        return [self._output.name_of(path) for path in self._core.paths()]

    @property
    def closed(self) -> bool:
        return self._core.closed

    @property
    def num_records(self) -> int:
        """Records written so far."""
        return self._core.num_records

    @property
    def num_bytes(self) -> int:
        """Bytes of all shards so far."""
        return self._core.num_bytes

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()

    def __del__(self) -> None:
        core = getattr(self, "_core", None)  # None if the constructor raised
        # A forked child leaves the writer to its parent.
        if core is not None and not core.closed and core.is_of_this_process:
            warnings.warn(
                f"{self!r} was never closed, so nothing was published. Use `with`.",
                ResourceWarning,
                stacklevel=2,
            )


class Writer(_ShardWriter):
    """Writes one shard, which appears under its name, with its index, when it is complete.

        with tfr.Writer("data/train-0.tfrecord") as writer:
            writer.write(tfr.encode_example({"label": 3}))

    Raises FileNotFoundError if the folder does not exist, and FileExistsError if the file exists
    and `overwrite` is False.

    Args:
      path: the shard. Its folder must exist. If the path is a link, the link's target is replaced.
      compression: None or "" makes a plain shard. "GZIP" makes a compressed shard of members of at
        most 1 MiB. TensorFlow reads the shard like any other, and tfrfast reads it at random.
      level: the compression level, from 0 to 9. The default is zlib's, 6.
      index: whether to make the index.
      index_folder: the folder of the index. The default is where every reader looks first, the
        sibling folder of the data folder (`imagenet/` -> `imagenet.tfrfast/`).
      sync: True waits until all bytes are on the disk, so that a power cut after `close` loses
        nothing.
      overwrite: True replaces an existing file in one step, when the shard is complete, and keeps
        the file's permissions. False makes an existing file an error.
      storage: how to reach a URL, as for Reader.

    Before `close`, nothing appears under the shard's name. If the filesystem has files without a
    name, nothing appears in the folder either. If an exception leaves `with`, or the process dies,
    nothing is published. Many threads may use one writer. A shard whose path is a URL (s3://,
    gs://, az://) is made in a folder for temporary files, and uploaded at `close`
    (docs/remote.md).
    """

    _core: _native.Writer

    @explains_arguments
    def __init__(
        self,
        path: FilePath,
        *,
        compression: Compression | None = None,
        level: int | None = None,
        index: bool = True,
        index_folder: IndexFolder = None,
        sync: bool = True,
        overwrite: bool = False,
        storage: Mapping[str, Any] | Storage | None = None,
    ) -> None:
        output = open_output(
            path,
            storage,
            index=index,
            index_folder=index_folder,
            sync=sync,
            overwrite=overwrite,
        )
        self._begin(_native.Writer, output, core_options(output, compression, level))

    @property
    def path(self) -> str:
        """The shard's name, links followed."""
        return self._paths()[0]

    def __repr__(self) -> str:
        if not hasattr(self, "_core"):
            return "Writer(not opened)"
        state = "closed, " if self.closed else ""
        return f"Writer({self.path!r}, {state}{self.num_records} records)"


class ShardedWriter(_ShardWriter):
    """Writes a set of shards, `prefix-00000-of-00064` and so on, published together.

    Args:
      prefix: the beginning of the shards' names, folder included. A missing folder is made.
      num_shards: the number of shards. Record i goes to shard i % num_shards. So shards differ by
        at most one record, and reading one record of each shard in turn gives the order of writing.
      max_bytes: instead of `num_shards`, the largest size of a shard before compression. Shards are
        filled one after the other, so that reading them in order gives the order of writing. A
        larger record has a shard of its own. Without records there is one empty shard. Names are
        known only at the end.
      compression, level, index, index_folder, sync: as for `Writer`.
      overwrite: True replaces all shards with that prefix. False makes any such shard an error,
        whatever the size of its set, because a glob would mix old and new shards.
      append: True adds shards to an existing set, with the next numbers: `prefix-00064-of-00064`
        and so on. The old shards keep their names, so record numbers hold, and the new ones have
        the old ones' compression. See docs/living.md.
      storage: how to reach URLs, as for Reader.

    All shards are complete before the first appears. If an exception leaves `with`, none appears.
    Many threads may use one writer. Shards with URLs are uploaded as by `Writer`, and the set's
    index is uploaded last.
    """

    @explains_arguments
    def __init__(
        self,
        prefix: FilePath,
        *,
        num_shards: SupportsIndex | None = None,
        max_bytes: SupportsIndex | None = None,
        compression: Compression | None = None,
        level: int | None = None,
        index: bool = True,
        index_folder: IndexFolder = None,
        sync: bool = True,
        overwrite: bool = False,
        append: bool = False,
        storage: Mapping[str, Any] | Storage | None = None,
    ) -> None:
        if (num_shards is None) == (max_bytes is None):
            raise ValueError("Say either num_shards or max_bytes.")
        count = 0 if num_shards is None else integer("num_shards", num_shards, 1, 10**6)
        size = 0 if max_bytes is None else integer("max_bytes", max_bytes, 1, 2**63 - 1)
        output = open_set(
            prefix,
            storage,
            append=append,
            index=index,
            index_folder=index_folder,
            sync=sync,
            overwrite=overwrite,
        )
        try:
            kept = appended_compression(output, compression)
            options = core_options(output, kept, level)
            options |= {"num_shards": count, "max_bytes": size}
            self._begin(_native.ShardedWriter, output, options, [output.path])
        except BaseException:
            output.discard()
            raise

    @property
    def paths(self) -> list[str]:
        """The shards' names. With `max_bytes`, they are known when the writer is closed."""
        return self._paths()

    def __repr__(self) -> str:
        if not hasattr(self, "_core"):
            return "ShardedWriter(not opened)"
        state = "closed, " if self.closed else ""
        return f"ShardedWriter({len(self.paths)} shards, {state}{self.num_records} records)"
