"""TFRecord to Parquet and back, by PyArrow. New files appear whole, or not at all."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from tfrfast._base.progress import ProgressBar
from tfrfast._tables.publishing import published
from tfrfast._writing.options import Compression
from tfrfast.encoding import encode_examples
from tfrfast.scanning import Scan
from tfrfast.writer import ShardedWriter

__all__ = ["Written", "export_parquet", "import_parquet"]

_BATCH_ROWS = 1 << 14
_SHARD = re.compile(r"-\d{5,}-of-\d{5,}\.parquet")


class Written(NamedTuple):
    """What was written."""

    paths: list[str]
    num_records: int
    num_bytes: int


def export_parquet(
    scan: Scan, out: str, *, shards: int | None, overwrite: bool, progress: bool | None
) -> Written:
    """Writes the rows of a scan to `out`, or to `shards` files whose names begin with it."""
    arrow = _pyarrow()
    if not scan.columns:
        raise ValueError("There are no features, and a Parquet file without columns has no rows.")
    names = _names(out, shards)
    taken = _taken(out, shards)
    if taken and not overwrite:
        raise FileExistsError(f"{taken[0]!r} exists. Give --overwrite to replace it.")
    rows = 0
    with published(names) as temporary, ProgressBar("Exporting", progress, "records") as bar:
        for number, name in enumerate(temporary):
            first, end = (len(scan) * each // len(names) for each in (number, number + 1))
            part = scan.part(rows=slice(first, end))
            with arrow.parquet.ParquetWriter(name, arrow.schema(part)) as writer:
                for batch in part:
                    written = arrow.record_batch(batch)
                    writer.write_batch(written)
                    rows += written.num_rows
                    bar.update(rows, len(scan))
    for name in set(taken).difference(names):  # a glob would mix them with the new ones
        os.remove(name)
    return Written(names, rows, sum(map(os.path.getsize, names)))


def import_parquet(
    paths: Sequence[str],
    out: str,
    *,
    shards: int | None,
    max_bytes: int | None,
    compression: Compression | None,
    overwrite: bool,
    progress: bool | None,
) -> Written:
    """Writes the rows of Parquet files as Examples to shards."""
    arrow = _pyarrow()
    files = [_opened(arrow, path) for path in paths]
    total = sum(file.metadata.num_rows for file in files)
    if shards is None and max_bytes is None:
        shards = 1
    writer = ShardedWriter(
        out, num_shards=shards, max_bytes=max_bytes, compression=compression, overwrite=overwrite
    )
    with writer, ProgressBar("Importing", progress, "rows") as bar:
        for file in files:
            for batch in file.iter_batches(_BATCH_ROWS):
                writer.write_batch(encode_examples(batch))
                bar.update(writer.num_records, total)
    return Written(writer.paths, writer.num_records, writer.num_bytes)


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ImportError(
            "Parquet takes PyArrow, which is not installed: pip install 'tfrfast[arrow]'."
        ) from None
    return pyarrow


def _opened(arrow: Any, path: str) -> Any:
    try:
        return arrow.parquet.ParquetFile(path)
    except arrow.ArrowInvalid as error:
        raise ValueError(f"'{path}' cannot be read as a Parquet file: {error}") from None


def _names(out: str, shards: int | None) -> list[str]:
    if shards is None:
        return [out]
    if shards < 1:
        raise ValueError(f"--shards must be at least 1, not {shards}.")
    return [f"{_stem(out)}-{number:05}-of-{shards:05}.parquet" for number in range(shards)]


def _stem(out: str) -> str:
    return out.removesuffix(".parquet")


def _taken(out: str, shards: int | None) -> list[str]:
    """The file, or the shards of any number, that an earlier export has left there."""
    if shards is None:
        return [out] if os.path.lexists(out) else []
    stem = _stem(out)
    found = glob.glob(glob.escape(stem) + "-*-of-*.parquet")
    return sorted(name for name in found if _SHARD.fullmatch(name.removeprefix(stem)))
