"""Columns for the native encoder, made from the users' columns of any kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tfrfast import _native
from tfrfast.columns import Array, Bytes, Ragged, Sparse
from tfrfast.columns.arrow_nodes import ArrowNode, exports_arrow
from tfrfast.columns.joining import joined
from tfrfast.errors import FeatureError
from tfrfast.example.encoded_values import (
    STRINGS,
    flat_values,
    is_nested,
    join,
    sequence_values,
    unfit,
    unmasked,
)

__all__ = ["EncoderColumn", "any_column", "arrow_column", "raw_column", "single_column"]


class EncoderColumn(NamedTuple):
    """A feature of many rows, for the native encoder."""

    name: str
    values: Array | None  # int64, float32, or uint8 for byte strings
    offsets: npt.NDArray[np.int64] | None = None  # of byte strings that differ in length
    row_splits: npt.NDArray[np.int64] | None = None  # of rows that differ in length
    row_values: int = 0
    value_bytes: int = 0
    present: npt.NDArray[np.bool_] | None = None


def single_column(name: str, value: Any) -> EncoderColumn:
    """Returns a column of one row with the values of `value` of any kind."""
    if isinstance(value, STRINGS):
        value = [value]
    if isinstance(value, (list, tuple)):
        values = sequence_values(name, value)
    elif isinstance(value, Bytes):
        values = Bytes(value.data, value.offsets)
    else:
        values = np.asarray(unmasked(name, value)).reshape(-1)
    column, rows = any_column(name, values)
    if column.offsets is not None or column.value_bytes or column.values is None:
        return column._replace(row_values=rows * column.row_values)
    return column._replace(row_values=column.values.size)


def any_column(name: str, value: Any) -> tuple[EncoderColumn, int]:
    """Returns the column in `value`, and its number of rows."""
    if isinstance(value, Ragged):
        return _ragged_column(name, value)
    if isinstance(value, Sparse):
        return _sparse_column(name, value)
    if isinstance(value, (Bytes, _native.RecordBatch)):
        shape = value.shape if isinstance(value, Bytes) else (len(value),)
        if not shape:
            raise unfit(name, "a single string is not a column: it has no rows.")
        offsets = np.ascontiguousarray(value.offsets, np.int64)
        column = EncoderColumn(
            name, np.ascontiguousarray(value.data), offsets, row_values=_product(shape[1:])
        )
        return column, shape[0]
    if isinstance(value, STRINGS):
        raise unfit(name, "a single string is not a column: it has no rows.")
    if isinstance(value, (list, tuple)):
        return _list_column(name, value)
    if exports_arrow(value) and not isinstance(value, np.ndarray):
        return arrow_column(name, list(ArrowNode.batches(value)))
    array = np.asarray(unmasked(name, value))
    if array.ndim == 0:
        raise unfit(name, "a single value is not a column: it has no rows.")
    if array.dtype.kind == "O" and array.ndim == 1:
        return _list_column(name, array.tolist())
    values = flat_values(name, array)
    row_values = _product(array.shape[1:])
    if isinstance(values, Bytes):
        return EncoderColumn(name, values.data, values.offsets, row_values=row_values), len(array)
    return EncoderColumn(name, values, row_values=row_values), len(array)


def arrow_column(
    name: str, parts: Sequence[ArrowNode], raw: bool = False
) -> tuple[EncoderColumn, int]:
    """Returns a column of another program, in parts. Null rows lack the feature."""
    present = np.concatenate([np.empty(0, np.bool_), *(part.present() for part in parts)])
    if not present.any():
        return EncoderColumn(name, None, present=present), len(present)
    try:
        values = joined([part.column() for part in parts])
    except (TypeError, ValueError) as error:
        raise FeatureError(str(error)) from None
    column, rows = raw_column(name, values) if raw else any_column(name, values)
    return (column if present.all() else column._replace(present=present)), rows


def raw_column(name: str, value: Any) -> tuple[EncoderColumn, int]:
    if exports_arrow(value) and not isinstance(value, (np.ndarray, Bytes, Ragged)):
        return arrow_column(name, list(ArrowNode.batches(value)), raw=True)
    value = unmasked(name, value)
    try:
        array = np.ascontiguousarray(value)
    except ValueError:
        raise unfit(name, "raw needs rows of the same shape.") from None
    if array.ndim == 0 or array.dtype.hasobject or array.dtype.kind in "SU":
        raise unfit(name, "raw needs an array of numbers with rows.")
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    row_bytes = _product(array.shape[1:]) * array.itemsize
    data = array.reshape(-1).view(np.uint8)
    return EncoderColumn(name, data, row_values=1, value_bytes=row_bytes), len(array)


def _ragged_column(name: str, value: Ragged) -> tuple[EncoderColumn, int]:
    splits = np.array(value.row_splits, np.int64)  # a copy, first checked and then used
    rows = len(splits) - 1
    inner, count = any_column(name, value.values)
    if len(splits) and not 0 <= int(splits[0]) <= int(splits[-1]) <= count:
        raise unfit(name, f"its row splits reach past its {count} values.")
    nested = inner.row_splits
    if nested is not None and np.any(splits[1:] < splits[:-1]):
        raise unfit(name, "its row splits do not ascend.")
    splits = splits * inner.row_values if nested is None else nested[splits]
    return inner._replace(row_splits=splits, row_values=0), rows


def _sparse_column(name: str, value: Sparse) -> tuple[EncoderColumn, int]:
    shape = np.asarray(value.dense_shape)
    if len(shape) != 2:
        raise unfit(
            name, f"a sparse column has two dimensions, rows and values, not the shape {shape}."
        )
    if value.indices.ndim != 2 or value.indices.shape[1] != 2:
        raise unfit(name, f"its indices must be pairs, not of shape {value.indices.shape}.")
    if len(value.indices) != len(value.values):
        raise unfit(name, f"it has {len(value.indices)} indices for {len(value.values)} values.")
    rows = int(shape[0])
    row_of_value = np.ascontiguousarray(value.indices[:, 0])
    if np.any((row_of_value < 0) | (row_of_value >= rows)):
        raise unfit(name, f"it has values in rows that its shape {shape.tolist()} does not have.")
    if np.any(row_of_value[1:] < row_of_value[:-1]):
        raise unfit(name, "its indices are not in order.")
    splits = np.searchsorted(row_of_value, np.arange(rows + 1))
    if np.any(value.indices[:, 1] != np.arange(len(row_of_value)) - splits[row_of_value]):
        raise unfit(
            name,
            "the values of each row must stand side by side from its left end, because an Example "
            "cannot hold positions. Encode values and positions as features of their own.",
        )
    return _ragged_column(name, Ragged(value.values, splits))


def _list_column(name: str, items: Sequence[Any]) -> tuple[EncoderColumn, int]:
    present = np.array([item is not None for item in items], np.bool_)
    some = [item for item in items if item is not None]
    if not some:
        column = EncoderColumn(name, None)
    elif any(is_nested(item) for item in some):
        column = _nested_column(name, items)
    else:
        values = sequence_values(name, some)
        if isinstance(values, Bytes):
            column = EncoderColumn(name, values.data, values.offsets, row_values=1)
        else:
            column = EncoderColumn(name, values, row_values=1)
        if len(some) < len(items):
            splits = np.concatenate([[0], np.cumsum(present)])
            column = column._replace(row_splits=splits.astype(np.int64), row_values=0)
    if len(some) < len(items):
        column = column._replace(present=present)
    return column, len(items)


def _nested_column(name: str, items: Sequence[Any]) -> EncoderColumn:
    """Returns a column of rows that are lists or arrays themselves."""
    rows: list[Array | Bytes] = []
    for item in items:
        if item is None:
            rows.append(np.empty(0, np.int64))
        elif isinstance(item, Bytes):
            rows.append(Bytes(item.data, item.offsets))
        elif isinstance(item, np.ndarray):
            rows.append(flat_values(name, unmasked(name, item)))
        else:
            rows.append(sequence_values(name, item if is_nested(item) else [item]))
    lengths = [row.size for row in rows]
    splits = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    full = [row for row in rows if row.size]
    kinds = {_kind(row) for row in full}
    if len(kinds) > 1 and "bytes" in kinds:
        raise unfit(name, "it mixes strings and other values.")
    if not full:
        return EncoderColumn(name, None, row_splits=np.zeros(len(items) + 1, np.int64))
    if kinds == {"bytes"}:
        strings = join([string for row in full for string in row.tolist()])
        return EncoderColumn(name, strings.data, strings.offsets, row_splits=splits)
    values = np.concatenate([np.asarray(row) for row in full])
    if values.dtype not in (np.int64, np.float32):
        values = values.astype(np.float32)  # integers among floats
    return EncoderColumn(name, values, row_splits=splits)


def _kind(values: Array | Bytes) -> str:
    return "bytes" if isinstance(values, Bytes) else "numbers"


def _product(shape: Sequence[int]) -> int:
    return int(np.prod(shape, dtype=np.int64))
