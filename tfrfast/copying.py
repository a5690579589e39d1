"""Chosen records as new shards: what is left of filters, samples, splits and joins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, SupportsIndex

import numpy as np

from tfrfast._base.arguments import Int64Array
from tfrfast._base.paths import Paths
from tfrfast._base.progress import ProgressBar
from tfrfast._columns.rows import row_numbers
from tfrfast._loading.records import open_reader
from tfrfast._native import RecordBatch
from tfrfast._writing.options import Compression, FilePath, Index
from tfrfast.reader import Reader, Skipped
from tfrfast.writer import ShardedWriter

__all__ = ["Copied", "copy"]

_PIECE_BYTES = 16 << 20


class Copied(NamedTuple):
    """What `tfr.copy` has written."""

    paths: list[str]
    num_records: int
    #: Of all shards.
    num_bytes: int
    #: The damage that was left out.
    skipped: list[Skipped]


def copy(
    source: Reader | Paths,
    records: Any,
    out: FilePath,
    *,
    num_shards: SupportsIndex | None = None,
    max_bytes: SupportsIndex | None = None,
    compression: Compression | None = None,
    level: int | None = None,
    index: Index = True,
    sync: bool = True,
    overwrite: bool = False,
    progress: bool | None = None,
    storage: Mapping[str, Any] | None = None,
    **reader_options: Any,
) -> Copied:
    """Writes the records with these numbers, byte for byte and in this order, to new shards.

        frame = tfrfast.polars.scan("data/train-*", features=features, record=True)
        cats = frame.filter(pl.col("label") == 3).select("record").collect()
        made = tfr.copy("data/train-*", cats["record"], "out/cats", num_shards=8)

    Returns a `Copied`: the new paths and the counts. Nothing appears under the new names before all
    shards are complete.

    Args:
      source: a Reader, or anything that Reader takes; `reader_options` are passed on to it.
      records: numbers of records, a slice or a mask. Numbers may come from any library whose
        columns NumPy takes as an array, and may occur more than once.
      out: the beginning of the new shards' names: `out/cats` makes `out/cats-00000-of-00008`.
      num_shards: the number of shards. Each has a run of the order given, and they differ by at
        most one record. Without it and `max_bytes`, there is one.
      max_bytes: instead of `num_shards`, the largest size of a shard.
      compression, level, index, sync, overwrite: as for `tfr.ShardedWriter`.
      progress: True or False shows or hides a bar on stderr. By default it appears on a terminal,
        after a second.
      storage: how to reach URLs, as for Reader, for `source` and `out` alike.

    Every record's checksums are verified, even if the Reader would not. Raises what reading raises.
    With `on_corruption="skip"`, damaged records are left out.
    """
    if storage is not None and not isinstance(source, Reader):
        reader_options["storage"] = storage
    reader = _verifying(open_reader(source, reader_options))
    numbers = row_numbers(records, len(reader), "Record")
    size = reader._records_within(_PIECE_BYTES)
    if reader.skips_damage:
        numbers = np.concatenate([numbers[:0], *_readable(reader, numbers, size)])
    if num_shards is None and max_bytes is None:
        num_shards = 1
    writer = ShardedWriter(
        out,
        num_shards=num_shards,
        max_bytes=max_bytes,
        compression=compression,
        level=level,
        index=index,
        sync=sync,
        overwrite=overwrite,
        storage=storage,
    )
    with writer, ProgressBar("Copying", progress, "records") as bar:
        if num_shards is not None:
            numbers = dealt(numbers, int(num_shards))
        for batch in _pieces(reader, numbers, size):
            writer.write_batch(batch)
            bar.update(writer.num_records, len(numbers))
    return Copied(writer.paths, writer.num_records, writer.num_bytes, reader.skipped)


def dealt(numbers: Int64Array, num_shards: int) -> Int64Array:
    """`numbers` in the order of which a writer that deals them out gives each shard a run."""
    turns = np.arange(len(numbers))
    sizes = np.full(num_shards, len(numbers) // num_shards)
    sizes[: len(numbers) % num_shards] += 1
    firsts = np.cumsum(sizes) - sizes
    order: Int64Array = numbers[firsts[turns % num_shards] + turns // num_shards]
    return order


def _verifying(reader: Reader) -> Reader:
    """The reader, or one of the same files that checks payloads, too."""
    if reader._options["verify"] == "full":
        return reader
    return Reader(reader._paths, **{**reader._options, "verify": "full"})


def _pieces(reader: Reader, numbers: Int64Array, size: int) -> Iterator[RecordBatch]:
    for first in range(0, len(numbers), size):
        yield reader.read(numbers[first : first + size])


def _readable(reader: Reader, numbers: Int64Array, size: int) -> Iterator[Int64Array]:
    """The numbers of records that are not damaged."""
    for batch in _pieces(reader, numbers, size):
        yield np.array(batch.indices)
