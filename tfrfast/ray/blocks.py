"""A scan's batches as Ray's blocks: tables of types that Ray's own consumers understand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tfrfast.features import FixedLen

__all__ = ["blocks"]


def blocks(batch: Any, features: Mapping[str, Any]) -> Iterator[Any]:
    """Returns a batch of a scan with `tensors=True` as PyArrow tables; one table unless the batch
    is huge.

    Ray's `to_tf` takes lists but no large lists, and knows only Ray's own type of tensors.
    """
    import pyarrow as pa

    rows = pa.record_batch(batch) if not isinstance(batch, pa.RecordBatch) else batch
    try:
        columns = [
            _column(rows.column(i), features.get(name)) for i, name in enumerate(rows.schema.names)
        ]
    except pa.ArrowInvalid:
        # Offsets of 32 bits reach 2 GiB of values.
        if len(rows) < 2:
            raise
        half = len(rows) // 2
        yield from blocks(rows.slice(0, half), features)
        yield from blocks(rows.slice(half), features)
        return
    yield pa.Table.from_arrays(columns, names=rows.schema.names)


def _column(column: Any, spec: Any) -> Any:
    import pyarrow as pa

    if isinstance(column.type, pa.FixedShapeTensorType):
        return _tensors(column, spec)
    wanted = _plain(column.type)
    return column if column.type == wanted else _from_zero(column).cast(wanted)


def _from_zero(column: Any) -> Any:
    """Returns the same values with offsets that begin at 0. A slice keeps the offsets of the whole
    array.
    """
    import pyarrow as pa

    kind = column.type
    if column.offset == 0 or not (
        pa.types.is_large_list(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_large_string(kind)
    ):
        return column
    rows = slice(column.offset, column.offset + len(column) + 1)
    offsets = np.frombuffer(column.buffers()[1], np.int64)[rows]
    begin, size = int(offsets[0]), int(offsets[-1] - offsets[0])
    absent = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    if pa.types.is_large_list(kind):
        values = _from_zero(column.values.slice(begin, size))
        mask = None if absent is None else pa.array(absent)
        return pa.LargeListArray.from_arrays(pa.array(offsets - begin), values, mask=mask)
    valid = None if absent is None else pa.array(~absent).buffers()[1]
    data = column.buffers()[2].slice(begin, size)
    buffers = [valid, pa.py_buffer(offsets - begin), data]
    return pa.Array.from_buffers(kind, len(column), buffers)


def _plain(kind: Any) -> Any:
    """Returns the type without offsets of 64 bits, lists of fixed size and dictionaries."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return _plain(kind.value_type)
    if pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return pa.list_(_plain(kind.value_type))
    if pa.types.is_large_binary(kind):
        return pa.binary()
    if pa.types.is_large_string(kind):
        return pa.string()
    return kind


def _tensors(column: Any, spec: FixedLen) -> Any:
    """Ray's tensors cannot be null, so a record without the feature has the default."""
    from ray.data.extensions import ArrowTensorArray

    shape = tuple(column.type.shape)
    size = int(np.prod(shape))
    storage = column.storage
    flat = storage.values.slice(storage.offset * size, len(storage) * size)
    values = flat.to_numpy(zero_copy_only=False).reshape(len(storage), *shape)
    if storage.null_count:
        values = values.copy()
        absent = storage.is_null().to_numpy(zero_copy_only=False)
        values[absent] = np.asarray(spec.default, values.dtype)
    return ArrowTensorArray.from_numpy(values)
