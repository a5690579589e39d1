"""Serializes values as tf.train.Examples, without TensorFlow.

The bytes are canonical: features are sorted by the bytes of their names, and numbers are packed.
They are those of `example.SerializeToString(deterministic=True)`, with one exception: protobuf for
Python puts a name after the longer names that begin with it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from tfrfast import _native
from tfrfast._encoding.columns import any_column, raw_column, single_column
from tfrfast.columns import Batch

__all__ = ["encode_example", "encode_examples"]


def encode_example(features: Mapping[str, Any]) -> bytes:
    """Serializes one tf.train.Example.

        record = tfr.encode_example({"label": 3, "image": jpeg_bytes})

    A feature is an int, float, bytes or str (as UTF-8), a list of them, or an array of any shape,
    which is flattened. Integers and bools become an int64 list, floats a float32 list (rounded),
    and strings a bytes list. `None` leaves the feature out. An empty list has no type and no
    values, and every feature description reads it as a missing feature.

    Raises FeatureError for a value that no list can hold.
    """
    return _native.encode_one(dict(features), single_column)


def encode_examples(
    columns: Mapping[str, Any], *, raw: Collection[str] = (), threads: int | None = None
) -> _native.RecordBatch:
    """Serializes many tf.train.Examples at once: row i of every column makes record i.

        records = tfr.encode_examples({"label": labels, "name": ["a", None, "c"]})
        writer.write_batch(records)

    A column is an array with a row for each record, `tfr.Ragged`, `tfr.Bytes`, `tfr.Sparse`, a
    RecordBatch (one byte string a row), or a list with an item for each row. An item is a number,
    bytes, str, a list or an array of them, or None for a row without the feature. `columns` may
    also be what `tfr.parse_example` returned; its padding stays marked as padding.

    Values become the same types as in `encode_example`. `raw` names arrays of which each row
    becomes one byte string, as it lies in memory; `tfr.FixedLen(shape, dtype, raw=True)` reads it
    back.

    Returns a RecordBatch. Raises FeatureError for values that no list can hold, and ValueError for
    columns that differ in their number of rows.

    Runs without the GIL. If another thread changes the arrays meanwhile, the result is a mixture of
    old and new values, or an error, but never anything else.
    """
    made = [
        raw_column(name, value) if name in raw else any_column(_checked_name(name), value)
        for name, value in columns.items()
    ]
    if unknown := set(raw) - set(columns):
        raise ValueError(f"raw names {sorted(unknown)}, which are not columns.")
    counts = {column.name: rows for column, rows in made}
    rows = next(iter(counts.values()), 0)
    for name, count in counts.items():
        if count != rows:
            first = next(iter(counts))
            raise ValueError(
                f"Columns must have the same number of rows, but {first!r} has {rows} and "
                f"{name!r} has {count}."
            )
    batch = _native.encode_columns(
        [column for column, _ in made], rows, threads or _native.usable_processors()
    )
    if isinstance(columns, Batch):
        batch.indices[:] = columns.indices
        batch.valid[:] = columns.valid
    return batch


def _checked_name(name: object) -> str:
    if not isinstance(name, str):
        raise TypeError(f"A feature's name must be a str, not {type(name).__name__}.")
    return name
