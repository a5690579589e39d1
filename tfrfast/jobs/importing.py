"""Writes the rows of Parquet files as Examples, with PyArrow."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tfrfast.base.progress import ProgressBar
from tfrfast.base.tables import summary
from tfrfast.example.encoding import encode_examples
from tfrfast.writing.options import Compression
from tfrfast.writing.writer import ShardedWriter

__all__ = ["Imported", "import_parquet", "pyarrow"]

_BATCH_ROWS = 1 << 14


class Imported(NamedTuple):
    """The result of an import of Parquet files."""

    paths: list[str]
    num_records: int
    num_bytes: int
    #: Columns whose type an export would not restore: the type before the import, and the type
    #: after an export.
    changed_types: dict[str, tuple[str, str]]

    def __repr__(self) -> str:
        return summary(self)


def import_parquet(
    paths: Sequence[str],
    out: str,
    *,
    num_shards: int | None,
    max_bytes: int | None,
    compression: Compression | None,
    overwrite: bool,
    progress: bool | None,
) -> Imported:
    """Writes the rows of Parquet files as Examples to shards."""
    arrow = pyarrow()
    total = 0
    changed: dict[str, tuple[str, str]] = {}
    for path in paths:  # opened one by one, because a process may open only so many files
        with _opened(arrow, path) as file:
            total += file.metadata.num_rows
            changed |= _changed_types(arrow, file.schema_arrow)
    if num_shards is None and max_bytes is None:
        num_shards = 1
    writer = ShardedWriter(
        out,
        num_shards=num_shards,
        max_bytes=max_bytes,
        compression=compression,
        overwrite=overwrite,
    )
    with writer, ProgressBar("Importing", progress, "rows") as bar:
        for path in paths:
            for batch in _batches(arrow, path):
                writer.write_batch(encode_examples(batch))
                bar.update(writer.num_records, total)
    return Imported(writer.paths, writer.num_records, writer.num_bytes, changed)


def _changed_types(arrow: Any, schema: Any) -> dict[str, tuple[str, str]]:
    """Returns the columns whose types are lost: records hold only int64, float32 and bytes."""
    types = arrow.types
    changed = {}
    for field in schema:
        found = field.type
        while types.is_list(found) or types.is_large_list(found) or types.is_fixed_size_list(found):
            found = found.value_type
        if types.is_floating(found):
            stored = arrow.float32()
        elif types.is_integer(found) or types.is_boolean(found) or types.is_temporal(found):
            stored = arrow.int64()
        elif types.is_binary(found) or types.is_large_binary(found):
            continue
        else:
            stored = arrow.binary()
        if found != stored:
            changed[field.name] = (str(found), str(stored))
    return changed


def pyarrow() -> Any:
    """Returns PyArrow with its Parquet. Raises ImportError that says how to install it."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ImportError(
            "Parquet needs PyArrow, which is not installed: pip install pyarrow."
        ) from None
    return pyarrow


def _opened(arrow: Any, path: str) -> Any:
    os.stat(path)  # its error is plainer than Arrow's
    try:
        return arrow.parquet.ParquetFile(path)
    except arrow.ArrowInvalid as error:
        raise _unreadable(path, error) from None


def _batches(arrow: Any, path: str) -> Iterator[Any]:
    with _opened(arrow, path) as file:
        try:
            yield from file.iter_batches(_BATCH_ROWS)
        except (arrow.ArrowException, OSError) as error:
            raise _unreadable(path, error) from None


def _unreadable(path: str, error: Exception) -> ValueError:
    return ValueError(f"{path!r} cannot be read as a Parquet file: {error}")
