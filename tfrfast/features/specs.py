"""Reads specs of tfrfast and of tf.io. Their dtypes may be NumPy's, TensorFlow's or names."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfrfast._native import INTEGER_TYPES
from tfrfast.features import (
    FixedLen,
    FixedLenSequence,
    Partition,
    SparseIndexed,
    VarLen,
)
from tfrfast.features.kinds import KINDS
from tfrfast.messages import MessageFeature

__all__ = ["number_type_of", "shape_of", "type_name_of", "understand"]


def understand(name: str, spec: Any) -> Any:
    """Returns tfrfast's spec for a spec of tf.io. The class is recognised by name, so nothing is
    imported.
    """
    if isinstance(spec, (*KINDS, MessageFeature)):
        return spec
    kind = type(spec).__name__
    if kind == "FixedLenFeature":
        return FixedLen(spec.shape, spec.dtype, spec.default_value)
    if kind == "FixedLenSequenceFeature":
        return FixedLenSequence(spec.shape, spec.dtype, spec.default_value, spec.allow_missing)
    if kind == "VarLenFeature":
        return VarLen(spec.dtype, sparse=True)
    if kind == "SparseFeature":
        return SparseIndexed(
            spec.index_key, spec.value_key, spec.dtype, spec.size, spec.already_sorted
        )
    if kind == "RaggedFeature":
        partitions = tuple(_partition_of(name, partition) for partition in spec.partitions)
        splits: Any = spec.row_splits_dtype.name
        return VarLen(spec.dtype, False, spec.value_key, partitions, splits)
    raise TypeError(
        f"Feature {name!r}: {spec!r} is not a feature spec. Use "
        f"{', '.join(f'tfr.{each.__name__}' for each in KINDS[:-1])}, tfr.{KINDS[-1].__name__}, "
        "a spec of tf.io, or a field of a tfr.Message."
    )


def _partition_of(name: str, partition: Any) -> Partition:
    names = {
        "RowLengths": "row_lengths",
        "RowSplits": "row_splits",
        "RowStarts": "row_starts",
        "RowLimits": "row_limits",
        "ValueRowIds": "value_rowids",
    }
    kind = type(partition).__name__
    if kind == "UniformRowLength":
        return "uniform_row_length", int(partition.length)
    if kind in names:
        return names[kind], partition.key
    raise TypeError(f"Feature {name!r}: {partition!r} is not a partition.")


def number_type_of(name: str, dtype: Any) -> np.dtype[Any]:
    """Returns NumPy's type for a type of NumPy, ml_dtypes or TensorFlow, or for a name."""
    named = dtype if isinstance(dtype, str) else getattr(dtype, "name", "")
    try:
        return np.dtype("S" if named == "string" else getattr(dtype, "as_numpy_dtype", dtype))
    except TypeError:
        raise TypeError(
            f'Feature {name!r}: {dtype!r} is not a dtype. Give "float32" or "float16", for example.'
        ) from None


def type_name_of(name: str, dtype: Any) -> str:
    """Returns the native parser's name for a dtype of NumPy or TensorFlow, or for a name."""
    if dtype is bytes or dtype == "bytes" or dtype == "string":
        return "bytes"
    named = getattr(dtype, "name", None)
    try:
        kind = named if isinstance(named, str) else np.dtype(dtype).name
    except TypeError:
        raise TypeError(
            f'Feature \'{name}\': {dtype!r} is not a dtype. Give "int64", "float32" or '
            '"bytes", for example.'
        ) from None
    if kind == "string":
        return "bytes"
    if kind in ("float32", *INTEGER_TYPES):
        return kind
    if kind.startswith(("str", "bytes", "object")):
        raise ValueError(f'Feature {name!r}: for strings the dtype is "bytes", not {dtype!r}.')
    raise ValueError(
        f"Feature {name!r}: records hold int64, float32 and bytes, which cannot be read as {kind}. "
        f"Integers also go into {', '.join(INTEGER_TYPES[1:])}."
    )


def shape_of(name: str, shape: Any, if_first_is_unknown: str = "") -> tuple[int, ...]:
    """Returns the sizes of a shape. A shape such as [None] gives `if_first_is_unknown`."""
    if shape is None:
        raise ValueError(f"Feature {name!r}: the shape is missing. It is () for a single value.")
    unknown = f"Feature {name!r}: all dimensions of the shape have to be known, not {shape}."
    if hasattr(shape, "rank") and shape.rank is None:
        raise ValueError(unknown)
    try:
        sizes = [getattr(size, "value", size) for size in shape]
    except TypeError:
        sizes = [shape]
    if sizes and sizes[0] is None and if_first_is_unknown:
        raise ValueError(
            f"Feature {name!r}: the first dimension of the shape {shape} is unknown. "
            f"{if_first_is_unknown}"
        )
    if any(size is None or int(size) < 0 for size in sizes):
        raise ValueError(unknown)
    return tuple(map(int, sizes))
