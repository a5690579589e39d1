"""Specs for the features that features.json describes, as TensorFlow Datasets stores them.

A feature becomes one or more features of the Example. Slashes join the names in a dict. A list of
lists is stored as flat values and the lengths of the rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tfrfast._native import INTEGER_TYPES
from tfrfast.features import FixedLen, Partition, VarLen

__all__ = ["UndescribedError", "specs_of"]

Spec = FixedLen | VarLen
Shape = tuple[int | None, ...]
# Bounds for untrusted files. NumPy has at most 32 or 64 dimensions.
_MAX_LEVELS = 32
_MAX_DIMENSIONS = 32


class UndescribedError(Exception):
    """A feature of a class that TensorFlow Datasets does not describe in JSON."""


def specs_of(described: dict[str, Any]) -> dict[str, Spec]:
    """Returns the specs by name. Raises UndescribedError if a feature can only be inferred from
    records, and ValueError for contents that TensorFlow Datasets does not write.
    """
    try:
        return dict(_specs("", described, (), 0))
    except (AttributeError, LookupError, TypeError, OverflowError) as error:
        raise ValueError(
            "features.json is not as TensorFlow Datasets writes it "
            f"({type(error).__name__}: {error}). Prepare the data set again."
        ) from None


def _specs(
    name: str, feature: dict[str, Any], lists: Shape, level: int
) -> Iterator[tuple[str, Spec]]:
    """`lists` holds the lengths of the lists around the feature, outermost first."""
    if level > _MAX_LEVELS:
        raise ValueError(f"features.json nests features more than {_MAX_LEVELS} levels deep.")
    if "featuresDict" in feature:
        for key, each in feature["featuresDict"].get("features", {}).items():
            yield from _specs(f"{name}/{key}" if name else key, each, lists, level + 1)
    elif "sequence" in feature:
        length = int(feature["sequence"].get("length", -1))
        inner = feature["sequence"]["feature"]
        yield from _specs(name, inner, (*lists, None if length < 0 else length), level + 1)
    elif "translation" in feature:
        translation = feature["translation"]
        if translation.get("variableLanguagesPerExample"):
            for key in ("language", "translation"):
                yield f"{name}/{key}", _spec(name, "bytes", (), (*lists, None))
        else:
            for language in translation.get("languages", []):
                yield f"{name}/{language}", _spec(name, "bytes", (), lists)
    elif "video" in feature:
        frames = _shape(feature["video"])[0]
        yield name, _spec(name, "bytes", (), (*lists, frames))
    else:
        yield name, _leaf(name, feature, lists)


def _leaf(name: str, feature: dict[str, Any], lists: Shape) -> Spec:
    if "image" in feature or "text" in feature:
        return _spec(name, "bytes", (), lists)  # encoded pictures
    if "classLabel" in feature:
        return _spec(name, "int64", (), lists)
    for kind in ("tensor", "audio", "boundingBox"):
        if kind not in feature:
            continue
        stored = feature[kind]
        shape, dtype = _shape(stored), stored.get("dtype", "")
        encoding = stored.get("encoding", "none").lower()
        if stored.get("lazyDecode") or encoding not in ("none", ""):
            raw = encoding == "bytes" and kind == "tensor" and not lists and None not in shape
            if raw and dtype in _WIDTHS:
                return FixedLen(_known(shape), dtype, raw=True)
            return _spec(name, "bytes", (), lists)
        if stored.get("optional"):
            return VarLen(_stored_type(name, dtype))
        return _spec(name, _stored_type(name, dtype), shape, lists)
    raise UndescribedError(name)


_WIDTHS = {f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)} | {
    "float32",
    "float64",
}


def _spec(name: str, dtype: str, shape: Shape, lists: Shape) -> Spec:
    whole = (*lists, *shape)
    if len(lists) > 1:
        rows: list[Partition] = [
            ("row_lengths", f"{name}/ragged_row_lengths_{level}") for level in range(len(lists) - 1)
        ]
        rows += [("uniform_row_length", size) for size in _known(shape)]
        return VarLen(dtype, key=f"{name}/ragged_flat_values", partitions=rows)
    if None not in whole:
        return FixedLen(_known(whole), dtype)
    if whole[0] is None and None not in whole[1:]:
        return VarLen(
            dtype, partitions=[("uniform_row_length", size) for size in _known(whole[1:])]
        )
    return VarLen(dtype)  # flat, because shapes inside an unknown length are not stored


def _known(shape: Shape) -> tuple[int, ...]:
    return tuple(size for size in shape if size is not None)


def _shape(stored: dict[str, Any]) -> Shape:
    dimensions = stored.get("shape", {}).get("dimensions", [])
    if len(dimensions) > _MAX_DIMENSIONS:
        raise ValueError(f"features.json has a shape of {len(dimensions)} dimensions.")
    return tuple(None if int(size) < 0 else int(size) for size in dimensions)


def _stored_type(name: str, dtype: str) -> str:
    """Narrow integers keep their type. Floats are stored as float32."""
    if dtype in INTEGER_TYPES:
        return dtype
    if dtype == "uint64":
        return "int64"
    if dtype in ("string", "object"):
        return "bytes"
    if dtype.startswith(("float", "bfloat")):
        return "float32"
    raise UndescribedError(name)
