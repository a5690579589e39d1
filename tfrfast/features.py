"""What to take out of each record: one spec a feature. The specs of tf.io are understood as well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

__all__ = [
    "AnyFeatures",
    "FeatureSpec",
    "Features",
    "FixedLen",
    "FixedLenSequence",
    "Partition",
    "SparseIndexed",
    "VarLen",
]


@dataclass(frozen=True)
class FixedLen:
    """Rows of one shape; an array `(batch, *shape)`, or `Bytes` of that shape for "bytes".

    A record without the feature is an error unless there is a `default`: one value, or a value of
    the whole shape. `dtype` is "int64", "float32", "bytes", or a narrower integer or "bool" that
    every value must fit. With `raw=True` a record holds one byte string of exactly the array's
    bytes, little-endian, and `dtype` is any number type.
    """

    shape: int | Sequence[int]
    dtype: Any
    default: Any = None
    raw: bool = False


@dataclass(frozen=True)
class FixedLenSequence:
    """Rows of any number of steps of one shape: an array `(batch, longest, *shape)`.

    Shorter rows, and records without the feature, are filled up with `default` (zero or b""). As a
    sequence feature of a SequenceExample each step is one entry of the list; the padding is always
    zeros there, and a record without the list is an error unless `allow_missing`.
    """

    shape: int | Sequence[int]
    dtype: Any
    default: Any = None
    allow_missing: bool = True


# ("row_lengths" | "row_splits" | "row_starts" | "row_limits" | "value_rowids", key), or
# ("uniform_row_length", length).
Partition = tuple[str, str | int]


@dataclass(frozen=True)
class VarLen:
    """Rows of any length: `Ragged`, or with `sparse=True` `Sparse` as tf.io.VarLenFeature gives.

    `key` is the feature's name in the record where it is not the name of the column. `partitions`
    divide a row further, outermost first, as those of tf.io.RaggedFeature do: each is a pair such
    as `("row_lengths", "key of an int64 feature")` or `("uniform_row_length", 3)`.
    """

    dtype: Any
    sparse: bool = False
    key: str | None = None
    partitions: Sequence[Partition] = ()
    splits_dtype: Literal["int32", "int64"] = "int64"


@dataclass(frozen=True)
class SparseIndexed:
    """`Sparse` columns whose positions the record holds: the values of feature `value_key` stand
    where the int64 features `index_keys` say, in a shape `(batch, *size)`.

    Positions are put in order unless `already_sorted`.
    """

    index_keys: str | Sequence[str]
    value_key: str
    dtype: Any
    size: int | Sequence[int]
    already_sorted: bool = False


# The classes above, or tf.io's FixedLenFeature, FixedLenSequenceFeature, VarLenFeature,
# SparseFeature and RaggedFeature.
FeatureSpec = Any
Features = Mapping[str, FeatureSpec]
# Or names, whose types are inferred from the records, or all that the records have.
AnyFeatures = Features | Sequence[str] | Literal["infer"]
