"""Compiles specs into slots of the native parser and recipes for columns."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from tfrfast._native import ImageSpec
from tfrfast.base.arguments import integer
from tfrfast.columns import Array, Column, Ragged
from tfrfast.errors import FeatureError
from tfrfast.features import (
    Bounds,
    Features,
    FixedLen,
    FixedLenSequence,
    Image,
    Scaled,
    SerializedTensor,
    SparseIndexed,
    VarLen,
    composed,
)
from tfrfast.features.compiled import CompiledFeatures, Slot
from tfrfast.features.normalising import lines_of
from tfrfast.features.specs import number_type_of, shape_of, type_name_of, understand
from tfrfast.messages import MessageFeature

__all__ = ["compile_features", "compile_once", "message_slot", "partition_keys"]

_MOST_FRAMES = 1 << 16
#: The numbers of TensorFlow's types whose serialized tensors are read.
_TENSOR_TYPES = {
    "float32": 1,
    "float64": 2,
    "int32": 3,
    "uint8": 4,
    "int16": 5,
    "int8": 6,
    "int64": 9,
    "bool": 10,
    "bfloat16": 14,
    "uint16": 17,
    "float16": 19,
    "uint32": 22,
    "uint64": 23,
}
_PARTITIONS = ("row_lengths", "row_splits", "row_starts", "row_limits", "value_rowids")
# For callers that pass the same dict again and again.
_MAX_REMEMBERED = 16
_compiled: dict[int, tuple[dict[str, Any], CompiledFeatures]] = {}
_remembering = threading.Lock()


def compile_features(features: Features) -> CompiledFeatures:
    """Compiles each spec. Raises ValueError or TypeError for a bad spec."""
    compiled = CompiledFeatures(dict(features))
    for name, given in features.items():
        if not isinstance(name, str):
            raise TypeError(f"feature names are str, not {type(name).__name__}")
        spec = understand(name, given)
        _COMPILERS[type(spec)](compiled, name, spec)
    return compiled


def compile_once(features: Features) -> CompiledFeatures:
    """Compiles `features`, unless the same dict was compiled before with the same specs."""
    key = id(features)
    known = _compiled.get(key)
    if known is not None:
        specs, compiled = known
        if len(specs) == len(features) and all(
            specs.get(name) is spec for name, spec in features.items()
        ):
            return compiled
    fresh = compile_features(features)
    with _remembering:
        while len(_compiled) >= _MAX_REMEMBERED:
            del _compiled[next(iter(_compiled))]
        _compiled[key] = (dict(features), fresh)
    return fresh


def _compile_fixed(compiled: CompiledFeatures, name: str, spec: FixedLen) -> None:
    shape = shape_of(name, spec.shape, "FixedLenSequence takes rows of any number of steps.")
    if spec.raw:
        dtype = np.dtype(spec.dtype)
        if dtype.hasobject or dtype.itemsize == 0:
            raise ValueError(f"Feature {name!r}: raw bytes cannot be read as {dtype}.")
        default = (
            None if spec.default is None else _full(name, spec.default, shape, dtype).tobytes()
        )
        row_bytes = math.prod(shape) * dtype.itemsize
        compiled.want(name, Slot("fixed", "raw", shape, default, None, row_bytes))

        def view(parsed: dict[str, Column]) -> Column:
            rows: Array = parsed[name]  # type: ignore[assignment]
            numbers: Array = rows.reshape(-1).view(dtype).reshape(len(rows), *shape)
            return numbers

        compiled.builders[name] = view
        return
    kind = type_name_of(name, spec.dtype)
    numbers, strings = _default_of(name, kind, shape, spec.default)
    slot = Slot("fixed", kind, shape, numbers, strings, inferred=spec.inferred)
    compiled.want(name, slot)
    compiled.builders[name] = lambda parsed: parsed[name]


def _compile_tensor(compiled: CompiledFeatures, name: str, spec: SerializedTensor) -> None:
    dtype = number_type_of(name, spec.dtype).newbyteorder("=")
    if dtype.name not in _TENSOR_TYPES:
        raise ValueError(
            f"Feature {name!r}: a SerializedTensor holds numbers or bool, not {dtype.name}. Take "
            'the string by tfr.FixedLen((), "bytes"), which tf.io.parse_tensor parses.'
        )
    any_length, inner = [], spec.shape
    if isinstance(inner, Sequence) and len(inner) and inner[0] is None:
        any_length, inner = [-1], inner[1:]
    sizes = shape_of(name, inner)
    if any_length and 0 in sizes:
        raise ValueError(f"Feature {name!r}: steps without values cannot be counted.")
    tensor = _TENSOR_TYPES[dtype.name], (*any_length, *sizes)
    slot = Slot("ragged" if any_length else "fixed", "tensor", () if any_length else sizes)
    compiled.want(name, slot._replace(tensor=tensor))

    def numbers(bytes_: Any) -> Array:
        shaped: Array = bytes_.reshape(-1).view(dtype).reshape(len(bytes_), *sizes)
        return shaped

    def build(parsed: dict[str, Column]) -> Column:
        found = parsed[name]
        if isinstance(found, Ragged):
            return Ragged(numbers(found.values), found.row_splits)
        return numbers(found)

    compiled.builders[name] = build


def _compile_message(compiled: CompiledFeatures, name: str, spec: MessageFeature) -> None:
    key, slot = message_slot(spec)
    compiled.want(key, slot)
    compiled.builders[name] = itemgetter(key)


def message_slot(spec: MessageFeature) -> tuple[str, Slot]:
    """Returns the name and the slot of a field of a message. All columns of the field share it."""
    key = spec.path if spec.content == "values" else f"{spec.path} ({spec.content})"
    strings = numbers = None
    if spec.default is not None:
        strings, numbers = (
            ((spec.default,), None) if spec.dtype == "bytes" else (None, spec.default)
        )
    layout = "ragged" if spec.levels else "fixed"
    return key, Slot(layout, spec.dtype, (), numbers, strings, path=spec)


def _compile_image(compiled: CompiledFeatures, name: str, spec: Image) -> None:
    size = (0, 0) if spec.size is None else shape_of(name, spec.size)
    if len(size) != 2 or (spec.size is not None and not any(size)):
        raise ValueError(
            f"Feature {name!r}: an Image's size is (height, width), each at least 1, not "
            f"{spec.size}. Without a size, each picture keeps its own."
        )
    frames = 0 if spec.frames is None else integer("frames", spec.frames, 1, _MOST_FRAMES)
    channels_first = spec.layout == "CHW"
    shape = (spec.channels, *size) if channels_first else (*size, spec.channels)
    if frames:
        shape = (frames, *shape)
    image: dict[str, Any] = {
        "height": size[0],
        "width": size[1],
        "channels": spec.channels,
        "crop": "none" if spec.crop is None else spec.crop,
        "area": tuple(spec.area),
        "ratio": tuple(spec.ratio),
        "flip": bool(spec.flip),
        "resize": spec.resize,
        "is_float": spec.dtype == "float32",
        "channels_first": channels_first,
        "upright": bool(spec.upright),
        "grey_if_damaged": spec.damaged == "grey",
        "max_pixels": spec.max_pixels,
        "frames": frames,
        "draws_each": spec.draws == "frame",
    }
    try:
        ImageSpec(**image)
    except ValueError as error:
        raise ValueError(f"Feature {name!r}: {error}") from None
    if spec.size is None:
        compiled.want(name, Slot("ragged", "image", image=image))
    else:
        compiled.want(name, Slot("fixed", "image", shape, image=image))
    compiled.builders[name] = lambda parsed: parsed[name]


def _compile_padded(compiled: CompiledFeatures, name: str, spec: FixedLenSequence) -> None:
    if not spec.allow_missing:
        raise ValueError(
            f"Feature {name!r}: FixedLenSequence requires allow_missing=True in an Example; "
            "records without it are empty."
        )
    kind = type_name_of(name, spec.dtype)
    numbers, strings = _default_of(name, kind, (), spec.default)
    slot = Slot("padded", kind, shape_of(name, spec.shape), numbers, strings)
    compiled.want(name, slot)
    compiled.builders[name] = lambda parsed: parsed[name]


def _compile_variable(compiled: CompiledFeatures, name: str, spec: VarLen) -> None:
    key = name if spec.key is None else spec.key
    kind = type_name_of(name, spec.dtype)
    if spec.sparse:
        if spec.partitions:
            raise ValueError(f"Feature {name!r}: sparse columns have no partitions.")
        compiled.want(key, Slot("sparse", kind))
        compiled.builders[name] = lambda parsed: composed.as_sparse(parsed[key])
        return
    compiled.want(key, Slot("ragged", kind, inferred=spec.inferred))
    for partition_key in partition_keys(name, spec):
        compiled.want(partition_key, Slot("ragged", "int64"))

    def build(parsed: dict[str, Column]) -> Column:
        try:
            rows = composed.divide(parsed[key], spec.partitions, parsed)
        except composed.Indivisible as found:
            raise FeatureError(
                f"Feature {name!r}: row {found.row} cannot be divided: {found.why}.",
                record=found.row,
            ) from None
        return composed.with_splits(rows, spec.splits_dtype)

    compiled.builders[name] = build


def partition_keys(name: str, spec: VarLen) -> list[str]:
    """Returns the features that divide a row. Raises ValueError for a bad partition."""
    keys = []
    for how, argument in spec.partitions:
        if how in _PARTITIONS and isinstance(argument, str):
            keys.append(argument)
        elif how != "uniform_row_length" or not isinstance(argument, int) or argument < 1:
            raise ValueError(
                f"Feature {name!r}: {(how, argument)!r} is not a partition. Give one of "
                f"{_PARTITIONS} with a feature's name, or 'uniform_row_length' with a positive "
                "number."
            )
    return keys


def _compile_indexed(compiled: CompiledFeatures, name: str, spec: SparseIndexed) -> None:
    keys = (spec.index_keys,) if isinstance(spec.index_keys, str) else tuple(spec.index_keys)
    size = shape_of(name, spec.size)
    if not keys or len(keys) != len(size):
        raise ValueError(f"Feature {name!r}: there must be one size for each index key.")
    for key in keys:
        compiled.want(key, Slot("ragged", "int64"))
    compiled.want(spec.value_key, Slot("ragged", type_name_of(name, spec.dtype)))

    def build(parsed: dict[str, Column]) -> Column:
        return composed.place(
            name,
            [parsed[key] for key in keys],
            parsed[spec.value_key],
            size,
            already_sorted=spec.already_sorted,
        )

    compiled.builders[name] = build


def _compile_normalised(compiled: CompiledFeatures, name: str, spec: Scaled | Bounds) -> None:
    inner = understand(name, spec.spec)
    if not isinstance(inner, FixedLen | FixedLenSequence | VarLen):
        raise TypeError(
            f"Feature {name!r}: {type(spec).__name__} normalises a FixedLen, a FixedLenSequence or "
            f"a VarLen, not {type(inner).__name__}."
        )
    _COMPILERS[type(inner)](compiled, name, inner)
    key = (inner.key or name) if isinstance(inner, VarLen) else name
    slot = compiled.slots[key]
    shape, lines = lines_of(name, spec)
    if slot.type != "float32" or compiled.wanted[key] > 1:
        raise ValueError(f"Feature {name!r}: only float32 is normalised, for a single column.")
    if slot.layout != "ragged" and slot.shape[len(slot.shape) - len(shape) :] != shape:
        raise ValueError(
            f"Feature {name!r}: values of the shape {slot.shape} are normalised by numbers of the "
            f"shape {shape}. The shape of the values must end in it."
        )
    compiled.slots[key] = slot._replace(scaling=(lines, spec.pad == "zeros"))


#: How each kind of spec adds its slots and its column.
_COMPILERS: dict[type, Callable[[CompiledFeatures, str, Any], None]] = {
    Bounds: _compile_normalised,
    FixedLen: _compile_fixed,
    FixedLenSequence: _compile_padded,
    Image: _compile_image,
    MessageFeature: _compile_message,
    Scaled: _compile_normalised,
    SerializedTensor: _compile_tensor,
    SparseIndexed: _compile_indexed,
    VarLen: _compile_variable,
}


def _full(name: str, default: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    values = np.asarray(default)
    if values.dtype.kind == "f" and dtype.kind in "iu":  # NumPy makes floats of some integers
        values = np.asarray(default, object)
    try:
        given = values.astype(dtype)
        fits = dtype.kind not in "iub" or np.array_equal(given, values)
    except (OverflowError, ValueError):
        fits = False
    if not fits:
        raise ValueError(f"Feature {name!r}: the default {default!r} does not fit in {dtype}.")
    if given.size == 1:
        return np.full(shape, given.reshape(())[()], dtype)
    if given.size != math.prod(shape):
        raise ValueError(f"Feature {name!r}: the default has {given.size} values, not {shape}.")
    return given.reshape(shape)


def _default_of(
    name: str, kind: str, shape: tuple[int, ...], default: Any
) -> tuple[bytes | None, tuple[bytes, ...] | None]:
    if default is None or math.prod(shape) == 0:
        return None, None
    if hasattr(default, "numpy"):
        default = default.numpy()
    if kind != "bytes":
        return _full(name, default, shape, np.dtype(kind)).tobytes(), None
    flat = [
        value.encode() if isinstance(value, str) else value
        for value in np.asarray(default, dtype=object).reshape(-1).tolist()
    ]
    if not all(isinstance(value, bytes) for value in flat):
        raise ValueError(f"Feature {name!r}: the default {default!r} is not bytes.")
    if len(flat) == 1:
        flat *= math.prod(shape)
    if len(flat) != math.prod(shape):
        raise ValueError(f"Feature {name!r}: the default has {len(flat)} values, not {shape}.")
    return None, tuple(flat)
