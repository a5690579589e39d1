"""Columns in Arrow's layout, and the two methods of Arrow's PyCapsule interface."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfrfast._native import ArrowColumn
from tfrfast.columns.arrays import Array

__all__ = ["FORMATS", "ArrowExport", "arrow_formats", "arrow_of", "fixed_lists", "struct_of"]

FORMATS = {
    "int8": "c",
    "uint8": "C",
    "int16": "s",
    "uint16": "S",
    "int32": "i",
    "uint32": "I",
    "int64": "l",
    "uint64": "L",
    "float16": "e",
    "float32": "f",
    "float64": "g",
    "bool": "b",
}


class ArrowExport:
    """Arrow's PyCapsule interface for a class that has `_to_arrow(name)`.

    Values that tfrfast decoded are not copied, so consumers see later writes to them. Offsets and
    other values are copied. The exported memory needs neither Python nor this object.
    """

    __slots__ = ()

    def _to_arrow(self, name: str) -> ArrowColumn:
        raise NotImplementedError

    def __arrow_c_schema__(self) -> Any:
        """Returns the type as a capsule for Arrow's consumers."""
        return self._to_arrow("").__arrow_c_schema__()

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
        """Returns the type and the data as capsules for Arrow's consumers.

        Ignores `requested_schema`, as the interface allows.
        """
        return self._to_arrow("").__arrow_c_array__(requested_schema)


def arrow_formats(name: str, dtype: np.dtype[Any]) -> str:
    """Returns Arrow's format for a number type. Raises TypeError if Arrow has none."""
    if dtype.name not in FORMATS or not dtype.isnative:
        raise TypeError(f"Column {name!r}: Arrow has no type for {dtype}.")
    return FORMATS[dtype.name]


def arrow_of(name: str, values: Any) -> ArrowColumn:
    """Returns a column of any class, or an array, in Arrow's layout."""
    if isinstance(values, ArrowExport):
        return values._to_arrow(name)
    array: Array = np.asarray(values)
    if array.ndim == 0:
        raise TypeError(f"Column {name!r}: a single value has no rows.")
    native = array.dtype.newbyteorder("=")
    kind = arrow_formats(name, native)
    shape = array.shape
    array = np.ascontiguousarray(array, native)
    leaf = name if array.ndim == 1 else "item"
    return fixed_lists(name, shape, ArrowColumn(leaf, kind, array.size, [array]))


def fixed_lists(name: str, shape: Sequence[int], items: ArrowColumn) -> ArrowColumn:
    """Returns `items`, the values of an array of this shape, as rows of fixed lists."""
    for axis in range(len(shape) - 1, 0, -1):
        outer = name if axis == 1 else "item"
        items = ArrowColumn(outer, f"+w:{shape[axis]}", math.prod(shape[:axis]), [], [items])
    return items


def struct_of(name: str, rows: int, columns: Sequence[ArrowColumn]) -> ArrowColumn:
    return ArrowColumn(name, "+s", rows, [], columns)
