"""Serializes values as tf.train.Examples, without TensorFlow.

The bytes are canonical: features are sorted by the bytes of their names, and numbers are packed.
They are those of `example.SerializeToString(deterministic=True)`, with one exception: protobuf for
Python puts a name after the longer names that begin with it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tfrfast import _native
from tfrfast.columns import Batch, Bytes, Ragged, Sparse
from tfrfast.errors import FeatureError

__all__ = ["encode_example", "encode_examples"]

_Array = npt.NDArray[Any]


class _Column(NamedTuple):
    """A feature of many rows, as the native encoder takes it."""

    name: str
    values: _Array | None  # int64, float32, or uint8 for byte strings
    offsets: npt.NDArray[np.int64] | None = None  # of byte strings that differ in length
    row_splits: npt.NDArray[np.int64] | None = None  # of rows that differ in length
    row_values: int = 0
    value_bytes: int = 0
    present: npt.NDArray[np.bool_] | None = None


def encode_example(features: Mapping[str, Any]) -> bytes:
    """Serializes one tf.train.Example.

        record = tfr.encode_example({"label": 3, "image": jpeg_bytes})

    A feature is an int, float, bytes or str (as UTF-8), a list of them, or an array of any shape,
    which is flattened. Integers and bools become an int64 list, floats a float32 list (rounded),
    and strings a bytes list. `None` leaves the feature out. An empty list has no type and no
    values, and every feature description reads it as a missing feature.

    Raises FeatureError for a value that no list can hold.
    """
    return _native.encode_one(dict(features), _single_column)


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
        _raw_column(name, value) if name in raw else _column(_checked_name(name), value)
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


def _single_column(name: str, value: Any) -> _Column:
    """A column of one row with the values of `value`, whatever its kind."""
    if isinstance(value, (list, tuple)):
        values = _sequence_values(name, value)
    elif isinstance(value, Bytes):
        values = Bytes(value.data, value.offsets)
    else:
        values = np.asarray(value).reshape(-1)
    column, rows = _column(name, values)
    if column.offsets is not None or column.value_bytes or column.values is None:
        return column._replace(row_values=rows * column.row_values)
    return column._replace(row_values=column.values.size)


def _column(name: str, value: Any) -> tuple[_Column, int]:
    """The column that `value` holds, and how many rows it has."""
    if isinstance(value, Ragged):
        return _ragged_column(name, value)
    if isinstance(value, Sparse):
        return _sparse_column(name, value)
    if isinstance(value, (Bytes, _native.RecordBatch)):
        shape = value.shape if isinstance(value, Bytes) else (len(value),)
        if not shape:
            raise _unfit(name, "a single string is not a column: it has no rows.")
        offsets = np.ascontiguousarray(value.offsets, np.int64)
        column = _Column(
            name, np.ascontiguousarray(value.data), offsets, row_values=_product(shape[1:])
        )
        return column, shape[0]
    if isinstance(value, (str, bytes)):
        raise _unfit(name, "a single string is not a column: it has no rows.")
    if isinstance(value, (list, tuple)):
        return _list_column(name, value)
    array = np.asarray(value)
    if array.ndim == 0:
        raise _unfit(name, "a single value is not a column: it has no rows.")
    if array.dtype.kind == "O" and array.ndim == 1:
        return _list_column(name, array.tolist())
    values = _flat_values(name, array)
    row_values = _product(array.shape[1:])
    if isinstance(values, Bytes):
        return _Column(name, values.data, values.offsets, row_values=row_values), len(array)
    return _Column(name, values, row_values=row_values), len(array)


def _raw_column(name: str, value: Any) -> tuple[_Column, int]:
    array = np.ascontiguousarray(value)
    if array.ndim == 0 or array.dtype.hasobject:
        raise _unfit(name, "raw needs an array of numbers with rows.")
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    row_bytes = _product(array.shape[1:]) * array.itemsize
    data = array.reshape(-1).view(np.uint8)
    return _Column(name, data, row_values=1, value_bytes=row_bytes), len(array)


def _ragged_column(name: str, value: Ragged) -> tuple[_Column, int]:
    splits = np.array(value.row_splits, np.int64)  # a copy, which is checked and then used
    rows = len(splits) - 1
    inner, count = _column(name, value.values)
    if len(splits) and not 0 <= int(splits[0]) <= int(splits[-1]) <= count:
        raise _unfit(name, f"its row splits reach past its {count} values.")
    nested = inner.row_splits
    if nested is not None and np.any(splits[1:] < splits[:-1]):
        raise _unfit(name, "its row splits do not ascend.")
    splits = splits * inner.row_values if nested is None else nested[splits]
    return inner._replace(row_splits=splits, row_values=0), rows


def _sparse_column(name: str, value: Sparse) -> tuple[_Column, int]:
    shape = np.asarray(value.dense_shape)
    if len(shape) != 2:
        raise _unfit(name, f"a sparse column must be of rows and values, not of shape {shape}.")
    if value.indices.ndim != 2 or value.indices.shape[1] != 2:
        raise _unfit(name, f"its indices must be pairs, not of shape {value.indices.shape}.")
    if len(value.indices) != len(value.values):
        raise _unfit(name, f"it has {len(value.indices)} indices for {len(value.values)} values.")
    rows = int(shape[0])
    row_of_value = np.ascontiguousarray(value.indices[:, 0])
    if np.any((row_of_value < 0) | (row_of_value >= rows)):
        raise _unfit(name, f"it has values in rows that its shape {shape.tolist()} does not have.")
    if np.any(row_of_value[1:] < row_of_value[:-1]):
        raise _unfit(name, "its indices are not in order.")
    splits = np.searchsorted(row_of_value, np.arange(rows + 1))
    if np.any(value.indices[:, 1] != np.arange(len(row_of_value)) - splits[row_of_value]):
        raise _unfit(
            name,
            "its values do not begin at the left and stand side by side, and an Example has no "
            "place for where they stand. Encode values and positions as features of their own.",
        )
    return _ragged_column(name, Ragged(value.values, splits))


def _list_column(name: str, items: Sequence[Any]) -> tuple[_Column, int]:
    present = np.array([item is not None for item in items], np.bool_)
    some = [item for item in items if item is not None]
    if not some:
        column = _Column(name, None)
    elif any(_is_nested(item) for item in some):
        column = _nested_column(name, items)
    else:
        values = _sequence_values(name, some)
        if isinstance(values, Bytes):
            column = _Column(name, values.data, values.offsets, row_values=1)
        else:
            column = _Column(name, values, row_values=1)
        if len(some) < len(items):
            splits = np.concatenate([[0], np.cumsum(present)])
            column = column._replace(row_splits=splits.astype(np.int64), row_values=0)
    if len(some) < len(items):
        column = column._replace(present=present)
    return column, len(items)


def _nested_column(name: str, items: Sequence[Any]) -> _Column:
    """Rows that are lists or arrays themselves."""
    rows: list[_Array | Bytes] = []
    for item in items:
        if item is None:
            rows.append(np.empty(0, np.int64))
        elif isinstance(item, Bytes):
            rows.append(Bytes(item.data, item.offsets))
        elif isinstance(item, np.ndarray):
            rows.append(_flat_values(name, item))
        else:
            rows.append(_sequence_values(name, item if _is_nested(item) else [item]))
    lengths = [row.size for row in rows]
    splits = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    full = [row for row in rows if row.size]
    kinds = {_kind(row) for row in full}
    if len(kinds) > 1 and "bytes" in kinds:
        raise _unfit(name, "it mixes strings and other values.")
    if not full:
        return _Column(name, None, row_splits=np.zeros(len(items) + 1, np.int64))
    if kinds == {"bytes"}:
        strings = _join([string for row in full for string in row.tolist()])
        return _Column(name, strings.data, strings.offsets, row_splits=splits)
    values = np.concatenate([np.asarray(row) for row in full])
    if values.dtype not in (np.int64, np.float32):
        values = values.astype(np.float32)  # integers among floats
    return _Column(name, values, row_splits=splits)


def _sequence_values(name: str, items: Sequence[Any]) -> _Array | Bytes:
    """The values of a list, which may be nested."""
    if all(isinstance(item, (str, bytes)) for item in items) and len(items):
        return _join(items)
    if any(isinstance(item, (str, bytes)) for item in items):
        raise _unfit(name, "it mixes strings and other values.")  # NumPy would turn all into text
    if any(isinstance(item, (list, tuple, Bytes)) for item in items):
        parts = [
            _sequence_values(name, item if isinstance(item, (list, tuple)) else [item])
            if not isinstance(item, Bytes)
            else item
            for item in items
        ]
        if any(isinstance(part, Bytes) for part in parts):
            if not all(isinstance(part, Bytes) or part.size == 0 for part in parts):
                raise _unfit(name, "it mixes strings and other values.")
            return _join([string for part in parts for string in np.ravel(part).tolist()])
        return np.concatenate([np.asarray(part) for part in parts])
    try:
        array = np.asarray(items)
    except ValueError:
        array = np.concatenate([np.ravel(np.asarray(item)) for item in items])
    return _flat_values(name, array)


def _flat_values(name: str, array: _Array) -> _Array | Bytes:
    """All values of an array, in C order, as int64, float32 or Bytes."""
    flat = np.ascontiguousarray(array).reshape(-1)
    if not flat.flags.aligned:
        flat = flat.copy()
    kind = flat.dtype.kind
    if kind in "bi":
        return flat.astype(np.int64, copy=False)
    if kind == "u":
        if flat.size and flat.dtype == np.uint64 and int(flat.max()) > np.iinfo(np.int64).max:
            raise _unfit(
                name, f"{int(flat.max())} does not fit int64, the only integers there are."
            )
        return flat.astype(np.int64)
    if kind == "f" or (kind == "V" and "float" in flat.dtype.name):  # bfloat16 and the like
        with np.errstate(over="ignore"):
            return flat.astype(np.float32, copy=False)
    if kind in "SU":
        return _join(flat.tolist())
    if kind == "O":
        items = flat.tolist()
        if all(isinstance(item, (str, bytes)) for item in items):
            return _join(items)
        if items and all(isinstance(item, int) for item in items):
            raise _unfit(name, "it has integers that do not fit int64, the only ones there are.")
    raise _unfit(name, f"values of type {_type_name(flat)} are neither numbers nor strings.")


def _join(strings: Sequence[str | bytes]) -> Bytes:
    encoded = [item.encode() if isinstance(item, str) else item for item in strings]
    offsets = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(item) for item in encoded], out=offsets[1:])
    return Bytes(np.frombuffer(b"".join(encoded), np.uint8), offsets)


def _is_nested(item: Any) -> bool:
    return isinstance(item, (list, tuple, Bytes)) or getattr(item, "ndim", 0) > 0


def _kind(values: _Array | Bytes) -> str:
    return "bytes" if isinstance(values, Bytes) else "numbers"


def _type_name(flat: _Array) -> str:
    if flat.dtype.kind == "O" and flat.size:
        return type(flat[0]).__name__
    return str(flat.dtype)


def _product(shape: Sequence[int]) -> int:
    return int(np.prod(shape, dtype=np.int64))


def _checked_name(name: object) -> str:
    if not isinstance(name, str):
        raise TypeError(f"A feature's name must be a str, not {type(name).__name__}.")
    return name


def _unfit(name: str, what: str) -> FeatureError:
    return FeatureError(f"Feature {name!r} cannot be encoded: {what}")
