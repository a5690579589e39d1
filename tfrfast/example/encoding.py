"""Serializes values as tf.train.Examples, without TensorFlow.

The bytes are canonical: features are sorted by the bytes of their names, and numbers are packed.
They equal `example.SerializeToString(deterministic=True)`, with one exception: protobuf for Python
puts a name after the longer names that begin with the name.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Protocol, TypeAlias

import numpy as np

from tfrfast import _native
from tfrfast.base.arguments import checked_threads
from tfrfast.base.refused_arguments import explains_arguments
from tfrfast.columns import Batch
from tfrfast.columns.arrow_nodes import ArrowNode, exports_arrow
from tfrfast.example.encoded_columns import (
    EncoderColumn,
    any_column,
    arrow_column,
    raw_column,
    single_column,
)

__all__ = ["ArrowTable", "encode_example", "encode_examples", "encoded_table"]


class _ArrowStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...


class _ArrowArray(Protocol):
    def __arrow_c_array__(self, requested_schema: Any = None) -> Any: ...


# pandas hands an unnamed index over under such a name.
_INDEX_OF_PANDAS = re.compile(r"__index_level_\d+__")

#: A table of another program, such as a frame of Polars or a table of PyArrow.
ArrowTable: TypeAlias = _ArrowStream | _ArrowArray


@explains_arguments
def encode_example(features: Mapping[str, Any]) -> bytes:
    """Serializes one tf.train.Example.

        record = tfr.encode_example({"label": 3, "image": jpeg_bytes})

    A feature is an int, float, bytes or str (as UTF-8), a list of values, or an array of any shape,
    which is flattened. A bytearray or a memoryview is a byte string, too. Integers and bools become
    an int64 list, floats a float32 list (rounded), and strings a bytes list. `None` leaves the
    feature out. An empty list has no type and no values, and every feature description reads it as
    a missing feature.

    Raises FeatureError for a value that no list can hold.
    """
    return _native.encode_one(dict(features), single_column)


@explains_arguments
def encode_examples(
    columns: Mapping[str, Any] | ArrowTable,
    *,
    raw: Collection[str] = (),
    threads: int | None = None,
) -> _native.RecordBatch:
    """Serializes many tf.train.Examples at once: row i of every column makes record i.

        records = tfr.encode_examples({"label": labels, "name": ["a", None, "c"]})
        writer.write_batch(records)

    A column is an array with a row for each record, `tfr.Ragged`, `tfr.Bytes`, `tfr.Sparse`, a
    RecordBatch (one byte string a row), or a list with an item for each row. An item is a number,
    bytes, str, a list or an array of values, or None for a row without the feature. `columns` may
    also be the result of `tfr.parse_example`; its padding stays marked as padding. Columns and
    whole tables of Polars, PyArrow, DuckDB and others are taken, too. A record lacks a feature that
    is null. The index of pandas is a feature only if it has a name.

    Values become the same types as in `encode_example`. `raw` names arrays whose rows become one
    byte string each, with the bytes in memory; `tfr.FixedLen(shape, dtype, raw=True)` reads the
    rows back.

    Returns a RecordBatch. Raises FeatureError for values that no list can hold, and ValueError for
    columns that differ in their number of rows.

    Runs without the GIL. If another thread changes the arrays meanwhile, the result is a mixture of
    old and new values, or an error.
    """
    if not isinstance(columns, Mapping):
        return _joined_records(list(encoded_table(columns, raw=raw, threads=threads)))
    made = [
        raw_column(name, value) if name in raw else any_column(_checked_name(name), value)
        for name, value in columns.items()
    ]
    if unknown := set(raw) - set(columns):
        raise ValueError(f"raw names {sorted(unknown)}, which are not columns.")
    batch = _encoded(made, threads)
    if isinstance(columns, Batch):
        batch.indices[:] = columns.indices
        batch.valid[:] = columns.valid
    return batch


def encoded_table(
    table: ArrowTable, *, raw: Collection[str] = (), threads: int | None = None
) -> Iterator[_native.RecordBatch]:
    """Yields the rows of another program's table as records, batch by batch."""
    if not exports_arrow(table):
        raise TypeError(
            "Columns must be a dict, or a table with Arrow's PyCapsule interface, not "
            f"{type(table).__name__}."
        )
    for batch in ArrowNode.batches(table):
        if not batch.is_table:
            raise TypeError(
                "This is a column without a name. Put it into a dict, as in encode_examples"
                '({"name": column}).'
            )
        if not batch.present().all():
            raise ValueError("A table whose rows are null as a whole cannot be encoded.")
        columns = [each for each in batch.children if not _INDEX_OF_PANDAS.fullmatch(each.name)]
        names = [_checked_name(column.name) for column in columns]
        if unknown := set(raw) - set(names):
            raise ValueError(f"raw names {sorted(unknown)}, which are not columns.")
        if len(set(names)) < len(names):
            raise ValueError(f"The table has two columns with one name: {sorted(names)}.")
        rows = slice(batch.offset, batch.offset + batch.length)
        yield _encoded(
            [arrow_column(each.name, [each.rows(rows)], each.name in raw) for each in columns],
            threads,
            batch.length,
        )


def _joined_records(parts: list[_native.RecordBatch]) -> _native.RecordBatch:
    if len(parts) == 1:
        return parts[0]
    none = np.empty(0, np.int64)
    data = np.concatenate([np.empty(0, np.uint8), *(part.data for part in parts)])
    sizes = np.concatenate([none, *(np.diff(part.offsets) for part in parts)])
    offsets = np.concatenate([none, [0], np.cumsum(sizes)]).astype(np.int64)
    rows = len(sizes)
    return _native.RecordBatch(data, offsets, np.arange(rows), np.ones(rows, np.bool_))


def _encoded(
    made: list[tuple[EncoderColumn, int]], threads: int | None, rows: int = 0
) -> _native.RecordBatch:
    counts = {column.name: count for column, count in made}
    rows = next(iter(counts.values()), rows)
    for name, count in counts.items():
        if count != rows:
            first = next(iter(counts))
            raise ValueError(
                f"Columns must have the same number of rows, but {first!r} has {rows} and "
                f"{name!r} has {count}."
            )
    columns = [column for column, _ in made]
    return _native.encode_columns(
        columns, rows, checked_threads(threads) or _native.usable_processors()
    )


def _checked_name(name: object) -> str:
    if not isinstance(name, str):
        raise TypeError(f"A feature's name must be a str, not {type(name).__name__}.")
    return name
