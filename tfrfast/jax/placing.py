"""Columns in the memory of devices."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from tfrfast.columns import Batch, Bytes, Pictures, Ragged, Sparse

__all__ = ["place", "place_columns"]


def place(batch: Batch, sharding: Any) -> Batch:
    """Returns the batch with its numbers on devices. Copies may still be under way.

    Byte strings and pictures of any size stay where they are. With a sharding, this process's rows
    become its part of global arrays.
    """
    columns = place_columns(batch, sharding)
    indices = _array("A record number", batch.indices, sharding)
    valid = _array("", batch.valid, sharding)
    crops: Any = {
        name: {field: _array("", values, sharding) for field, values in each.items()}
        for name, each in batch.crops.items()
    }
    return Batch(columns, indices, valid, batch.source_starts, crops)


def place_columns(columns: dict[str, Any], sharding: Any) -> dict[str, Any]:
    return {name: _column(f"Feature {name!r}", each, sharding) for name, each in columns.items()}


def _column(what: str, column: Any, sharding: Any) -> Any:
    if isinstance(column, (Bytes, Pictures)):
        return column
    if not isinstance(column, (Ragged, Sparse)):
        return _array(what, column, sharding)
    if sharding is not None:
        raise ValueError(
            f"{what}: rows of any length cannot be sharded. Ask for it as tfr.FixedLen or "
            "tfr.FixedLenSequence, or leave the sharding out."
        )
    if isinstance(column, Ragged):
        splits = _array(what, column.row_splits, None)
        return Ragged(_column(what, column.values, None), splits)
    values = _column(what, column.values, None)
    return Sparse(_array(what, column.indices, None), values, column.dense_shape)


def _array(what: str, array: np.ndarray[Any, Any], sharding: Any) -> Any:
    if array.dtype.itemsize == 8 and array.dtype.kind in "iu" and not jax.config.jax_enable_x64:
        _check_32_bits(what, array)
    if sharding is None:
        return jax.device_put(array)
    return jax.make_array_from_process_local_data(sharding, array)


def _check_32_bits(what: str, array: np.ndarray[Any, Any]) -> None:
    limits = np.iinfo(np.int32 if array.dtype.kind == "i" else np.uint32)
    for value in (int(array.min()), int(array.max())) if array.size else ():
        if not limits.min <= value <= limits.max:
            raise OverflowError(
                f"{what}: {value} does not fit in 32 bits. JAX keeps 64 bits only after "
                'jax.config.update("jax_enable_x64", True).'
            )
