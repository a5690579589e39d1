"""Specs of the features to take from each record. tf.io's specs work as well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tfrfast.base.refused_arguments import refuse_wrong_fields
from tfrfast.features.normalising import Bounds, Scaled

__all__ = [
    "AnyFeatures",
    "Bounds",
    "FeatureSpec",
    "Features",
    "FixedLen",
    "FixedLenSequence",
    "Image",
    "Partition",
    "Scaled",
    "SerializedTensor",
    "SparseIndexed",
    "VarLen",
]


class _Checked:
    def __post_init__(self) -> None:
        refuse_wrong_fields(self)


@dataclass(frozen=True)
class FixedLen:
    """A feature whose rows all have one shape.

    The column is an array `(batch, *shape)`, or `Bytes` of that shape for "bytes".

    A record without the feature gets `default`: one value, or a value of the whole shape. Without a
    `default`, such a record is a FeatureError. `dtype` is "int64", "float32", "bytes", a narrower
    integer type or "bool"; every value must fit it. With `raw=True`, a record holds one byte string
    of exactly the array's bytes, little-endian, and `dtype` may be any number type.

    >>> records = [tfr.encode_example({"label": 3}), tfr.encode_example({})]
    >>> tfr.parse_example(records, {"label": tfr.FixedLen((), "int32", default=-1)})["label"]
    array([ 3, -1], dtype=int32)
    """

    shape: int | Sequence[int]
    dtype: Any
    default: Any = None
    raw: bool = False
    #: True if some records show that records are so: another kind of record is then an error.
    inferred: bool = field(default=False, repr=False, compare=False, kw_only=True)


@dataclass(frozen=True)
class FixedLenSequence:
    """A feature whose rows have any number of steps of one shape, padded to the longest row.

    The column is an array `(batch, longest, *shape)`. Shorter rows, and records without the
    feature, are filled up with `default` (zero or b"").

    In a SequenceExample each step is one entry of the feature's list, the padding is always zeros
    or b"", and a record without the list is a FeatureError unless `allow_missing`.

    >>> records = [tfr.encode_example({"ids": [1, 2, 3]}), tfr.encode_example({"ids": [4]})]
    >>> tfr.parse_example(records, {"ids": tfr.FixedLenSequence((), "int64")})["ids"].tolist()
    [[1, 2, 3], [4, 0, 0]]
    """

    shape: int | Sequence[int]
    dtype: Any
    default: Any = None
    allow_missing: bool = True


# ("row_lengths" | "row_splits" | "row_starts" | "row_limits" | "value_rowids", key), or
# ("uniform_row_length", length).
Partition = tuple[str, str | int]


@dataclass(frozen=True)
class VarLen(_Checked):
    """A feature whose rows have any length.

    The column is `Ragged`; with `sparse=True` it is `Sparse`, as for tf.io.VarLenFeature.

    `key` is the feature's name in the record, if it differs from the name of the column.
    `partitions` divide a row further, outermost first, like the partitions of tf.io.RaggedFeature.
    Each is a pair such as `("row_lengths", "key of an int64 feature")` or `("uniform_row_length",
    3)`.

    >>> records = [tfr.encode_example({"ids": [1, 2, 3]}), tfr.encode_example({"ids": [4]})]
    >>> tfr.parse_example(records, {"ids": tfr.VarLen("int64")})["ids"].tolist()
    [[1, 2, 3], [4]]
    """

    dtype: Any
    sparse: bool = False
    key: str | None = None
    partitions: Sequence[Partition] = ()
    splits_dtype: Literal["int32", "int64"] = "int64"
    #: As for FixedLen.
    inferred: bool = field(default=False, repr=False, compare=False, kw_only=True)


@dataclass(frozen=True)
class Image(_Checked):
    """An encoded JPEG or PNG, decoded, cut and resized by the threads that read.

    The column is an array `(batch, height, width, channels)` of `dtype`, where `size` is
    `(height, width)`. With `layout="CHW"` it is `(batch, channels, height, width)`. Pixels are
    "uint8", or "float32" from 0 to 255. Without a size, the column is `Pictures`, and each picture
    has the size of its window.

    `crop="center"` takes the largest window in the middle with the shape of `size`.
    `crop="random"` draws a window for each row: `area` bounds its share of the image, and `ratio`
    its width divided by its height. By default the whole image is taken. `flip=True` mirrors
    half of the rows, left to right. Windows and mirrors are drawn from the seed of the order, the
    epoch, and the row's position in it. So they are the same on any number of threads and ranks,
    and after a resume. Features of one record have the same draws. `Batch.crops` says what was
    done.

    `frames` is the number of pictures in a row, such as the steps of a `Window`, which the column
    then has as its second dimension: `(batch, frames, height, width, channels)`. Loaders and scans
    of Steps take it from the feature's window. All frames of a row have the same draws; with
    `draws="frame"` each has its own. An empty string is a black picture if the record's
    `<name>/valid`, which `Steps` write, says that the step is padding. A batch decodes a picture
    that several windows share once.

    `resize` is "bilinear", which averages when it makes images smaller, or "area". `upright=True`
    turns photos as their EXIF data says. An image that is damaged, or has another format or more
    than `max_pixels`, raises FeatureError. With `damaged="grey"` its row is grey instead, or empty
    without a size, and `Batch.crops` flags the row.

    >>> photo = tfr.Image(size=(224, 224), crop="random", flip=True)
    >>> features = {"image": photo, "label": tfr.FixedLen((), "int64")}
    """

    size: tuple[int, int] | None = None
    channels: Literal[1, 3] = 3
    crop: Literal["center", "random"] | None = None
    area: tuple[float, float] = (0.08, 1.0)
    ratio: tuple[float, float] = (3 / 4, 4 / 3)
    flip: bool = False
    resize: Literal["bilinear", "area"] = "bilinear"
    dtype: Literal["uint8", "float32"] = "uint8"
    layout: Literal["HWC", "CHW"] = "HWC"
    upright: bool = False
    damaged: Literal["error", "grey"] = "error"
    max_pixels: int = 1 << 26
    frames: int | None = None
    draws: Literal["row", "frame"] = "row"


@dataclass(frozen=True)
class SerializedTensor(_Checked):
    """A tensor that `tf.io.serialize_tensor` wrote into a byte string, as its values.

    `dtype` is the tensor's: a number type or bool, also float16 and TensorFlow's or ml_dtypes'
    bfloat16. With a known `shape`, the column is an array `(batch, *shape)`. The first dimension
    may be None, as for trajectories of any number of steps: the column is then `Ragged`, with steps
    of the other dimensions.

    The values and the order of bytes are those of `tf.io.parse_tensor`. A record without the
    feature, or with a tensor of another type or shape, is a FeatureError.

    >>> spec = tfr.SerializedTensor((64, 64, 4), "float16")
    >>> features = {"latents": spec, "actions": tfr.SerializedTensor((None, 7), "float32")}
    """

    shape: int | Sequence[int | None]
    dtype: Any


@dataclass(frozen=True)
class SparseIndexed(_Checked):
    """Values whose positions the record holds. The column is `Sparse` of shape `(batch, *size)`.

    `value_key` names the feature with the values. `index_keys` name int64 features with the
    positions, a feature for each dimension of `size`. Positions are sorted unless `already_sorted`.

    >>> record = tfr.encode_example({"at": [7, 2], "value": [0.5, 1.0]})
    >>> spec = tfr.SparseIndexed("at", "value", "float32", size=10)
    >>> tfr.parse_example([record], {"x": spec})["x"].indices.tolist()
    [[0, 2], [0, 7]]
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
# A dict of specs; or names whose specs are inferred from the records; or "infer", for all features.
AnyFeatures = Features | Sequence[str] | Literal["infer"]
#: tfrfast's own kinds of specs.
KINDS = (FixedLen, FixedLenSequence, VarLen, SparseIndexed, Image, SerializedTensor, Scaled, Bounds)
