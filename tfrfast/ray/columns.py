"""The columns of Ray's blocks without Ray's own types, for encoding."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfrfast.errors import FeatureError

__all__ = ["storage_columns"]


def storage_columns(table: Any) -> Any:
    """Returns the table with tensors as lists of their values. Raises FeatureError for Python
    objects that Ray has pickled.
    """
    import pyarrow as pa

    columns = []
    for name, column in zip(table.schema.names, table.columns, strict=True):
        if isinstance(column.type, pa.BaseExtensionType):
            pieces = [_stored(name, piece) for piece in column.chunks]
            column = pa.chunked_array(pieces) if pieces else pa.nulls(0)
        columns.append(column)
    return pa.Table.from_arrays(columns, names=table.schema.names)


def _stored(name: str, column: Any) -> Any:
    """Returns an array of an extension type as an array of its storage type."""
    import pyarrow as pa
    from ray.data.extensions import ArrowPythonObjectType, ArrowVariableShapedTensorType

    if isinstance(column.type, ArrowPythonObjectType):
        raise FeatureError(
            f"Column {name!r} holds Python objects. A feature is numbers or byte strings: turn "
            "them into arrays, or drop the column."
        )
    if isinstance(column.type, ArrowVariableShapedTensorType):
        return column.storage.field("data")
    if hasattr(column, "to_numpy_ndarray") and not column.null_count:
        values = column.to_numpy_ndarray()
        size = int(np.prod(values.shape[1:]))
        if size:
            flat = pa.array(np.ascontiguousarray(values).reshape(-1))
            return pa.FixedSizeListArray.from_arrays(flat, size)
    return column.storage
