"""Compiled feature descriptions: what the native parser fills, and how its columns become ours."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np

from tfrfast._features import composed
from tfrfast._native import INTEGER_TYPES, ExampleParser, FeaturePlan, FeatureSpec
from tfrfast.columns import Array, Bytes, Column, Ragged, Sparse
from tfrfast.features import (
    Features,
    FixedLen,
    FixedLenSequence,
    Partition,
    SparseIndexed,
    VarLen,
)

__all__ = ["CompiledFeatures", "NativeColumn", "compile_features", "remember", "understand"]

_PARTITIONS = ("row_lengths", "row_splits", "row_starts", "row_limits", "value_rowids")

# (values, offsets, row splits, indices, shape), as ExampleParser returns them.
NativeColumn = tuple[Any, Any, Any, Any, tuple[int, ...]]


class Slot(NamedTuple):
    """One feature of the record, in the native parser's terms."""

    layout: str
    type: str
    shape: tuple[int, ...] = ()
    default_numbers: bytes | None = None
    default_strings: tuple[bytes, ...] | None = None
    raw_bytes: int = 0
    required: bool = False


@dataclass
class CompiledFeatures:
    """A feature description in the native parser's terms."""

    slots: dict[str, Slot] = field(default_factory=dict)
    builders: dict[str, Callable[[dict[str, Column]], Column]] = field(default_factory=dict)
    #: Whether the names were compared with those of some records.
    names_checked: bool = False

    @cached_property
    def plan(self) -> FeaturePlan:
        return plan_of(self.slots)

    @cached_property
    def parser(self) -> ExampleParser:
        return ExampleParser(self.plan)

    def assemble(self, native: Sequence[NativeColumn]) -> dict[str, Column]:
        """The requested columns, made from the parsed ones."""
        parsed: dict[str, Column] = dict(zip(self.slots, map(column_of, native), strict=True))
        return {name: build(parsed) for name, build in self.builders.items()}

    def requires(self, key: str) -> bool:
        """Whether a record without this feature is an error."""
        slot = self.slots[key]
        has_default = slot.default_numbers is not None or slot.default_strings is not None
        return slot.layout == "fixed" and not has_default

    def want(self, key: str, slot: Slot) -> None:
        """Asks for a feature of the record. Several columns may be made from it."""
        known = self.slots.get(key)
        if known is not None and known != slot:
            variable = {known.layout, slot.layout} == {"ragged", "sparse"}
            if not variable or known.type != slot.type:
                raise ValueError(f"Feature '{key}' is asked for in two ways that do not agree.")
            slot = slot._replace(layout="ragged")
        self.slots[key] = slot


def plan_of(slots: dict[str, Slot]) -> FeaturePlan:
    return FeaturePlan([FeatureSpec(name=name, **slot._asdict()) for name, slot in slots.items()])


def column_of(native: NativeColumn) -> Column:
    values, offsets, splits, indices, shape = native
    if offsets is not None:
        rows_differ = splits is not None or indices is not None
        values = Bytes(values, offsets, None if rows_differ else shape)
    if splits is not None:
        return Ragged(values, splits)
    if indices is not None:
        return Sparse(indices, values, np.array(shape, np.int64))
    return values  # type: ignore[no-any-return]


def compile_features(features: Features) -> CompiledFeatures:
    """Understands each spec and compiles the parser; ValueError or TypeError for a bad one."""
    compiled = CompiledFeatures()
    for name, given in features.items():
        if not isinstance(name, str):
            raise TypeError(f"feature names are str, not {type(name).__name__}")
        spec = understand(name, given)
        if isinstance(spec, FixedLen):
            _compile_fixed(compiled, name, spec)
        elif isinstance(spec, FixedLenSequence):
            _compile_padded(compiled, name, spec)
        elif isinstance(spec, VarLen):
            _compile_variable(compiled, name, spec)
        else:
            _compile_indexed(compiled, name, spec)
    return compiled


def _compile_fixed(compiled: CompiledFeatures, name: str, spec: FixedLen) -> None:
    shape = shape_of(name, spec.shape)
    if spec.raw:
        dtype = np.dtype(spec.dtype)
        if dtype.hasobject or dtype.itemsize == 0:
            raise ValueError(f"Feature '{name}': raw bytes cannot be read as {dtype}.")
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
    compiled.want(name, Slot("fixed", kind, shape, numbers, strings))
    compiled.builders[name] = lambda parsed: parsed[name]


def _compile_padded(compiled: CompiledFeatures, name: str, spec: FixedLenSequence) -> None:
    if not spec.allow_missing:
        raise ValueError(
            f"Feature '{name}': FixedLenSequence requires allow_missing=True in an Example; "
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
            raise ValueError(f"Feature '{name}': sparse columns have no partitions.")
        compiled.want(key, Slot("sparse", kind))
        compiled.builders[name] = lambda parsed: composed.as_sparse(parsed[key])
        return
    compiled.want(key, Slot("ragged", kind))
    for how, argument in spec.partitions:
        if how in _PARTITIONS and isinstance(argument, str):
            compiled.want(argument, Slot("ragged", "int64"))
        elif how != "uniform_row_length" or not isinstance(argument, int) or argument < 1:
            raise ValueError(
                f"Feature '{name}': {(how, argument)!r} is not a partition. Give one of "
                f"{_PARTITIONS} with a feature's name, or 'uniform_row_length' with a positive "
                "number."
            )

    def build(parsed: dict[str, Column]) -> Column:
        rows = composed.divide(name, parsed[key], spec.partitions, parsed)
        return composed.with_splits(rows, spec.splits_dtype)

    compiled.builders[name] = build


def _compile_indexed(compiled: CompiledFeatures, name: str, spec: SparseIndexed) -> None:
    keys = (spec.index_keys,) if isinstance(spec.index_keys, str) else tuple(spec.index_keys)
    size = shape_of(name, spec.size)
    if not keys or len(keys) != len(size):
        raise ValueError(f"Feature '{name}': there must be one size for each index key.")
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


def understand(name: str, spec: Any) -> FixedLen | FixedLenSequence | VarLen | SparseIndexed:
    """Our own spec for one of tf.io's. Its class is recognised by name, so nothing is imported."""
    if isinstance(spec, (FixedLen, FixedLenSequence, VarLen, SparseIndexed)):
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
        f"Feature '{name}': {spec!r} is not a feature spec. Use tfr.FixedLen, "
        "tfr.FixedLenSequence, tfr.VarLen or tfr.SparseIndexed, or those of tf.io."
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
    raise TypeError(f"Feature '{name}': {partition!r} is not a partition.")


def type_name_of(name: str, dtype: Any) -> str:
    """The native parser's name for a dtype, which may be NumPy's, TensorFlow's or a name."""
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
        raise ValueError(f"Feature '{name}': for strings the dtype is \"bytes\", not {dtype!r}.")
    raise ValueError(
        f"Feature '{name}': records hold int64, float32 and bytes, which cannot be read as {kind}. "
        f"Integers also go into {', '.join(INTEGER_TYPES[1:])}."
    )


def shape_of(name: str, shape: Any) -> tuple[int, ...]:
    try:
        sizes = tuple(int(size) for size in shape)
    except TypeError:
        if shape is None or hasattr(shape, "rank"):
            raise ValueError(f"Feature '{name}': every dimension of the shape is needed.") from None
        sizes = (int(shape),)
    if any(size < 0 for size in sizes):
        raise ValueError(f"Feature '{name}': every dimension of the shape {sizes} is needed.")
    return sizes


def _full(name: str, default: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    values = np.asarray(default)
    given = values.astype(dtype)
    if dtype.kind in "iub" and not np.array_equal(given, values):
        raise ValueError(f"Feature '{name}': the default {default!r} does not fit in {dtype}.")
    if given.size == 1:
        return np.full(shape, given.reshape(())[()], dtype)
    if given.size != math.prod(shape):
        raise ValueError(f"Feature '{name}': the default has {given.size} values, not {shape}.")
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
        raise ValueError(f"Feature '{name}': the default {default!r} is not bytes.")
    if len(flat) == 1:
        flat *= math.prod(shape)
    if len(flat) != math.prod(shape):
        raise ValueError(f"Feature '{name}': the default has {len(flat)} values, not {shape}.")
    return None, tuple(flat)


Compiled = TypeVar("Compiled")
_REMEMBERED = 16
_remembering = threading.Lock()


def remember(
    memory: dict[int, tuple[dict[str, Any], Any]],
    features: Features,
    compiled_by: Callable[[Features], Compiled],
) -> Compiled:
    """Compiles `features` unless the very same specs were compiled from that dict before."""
    key = id(features)
    known = memory.get(key)
    if known is not None:
        specs, compiled = known
        if len(specs) == len(features) and all(
            specs.get(name) is spec for name, spec in features.items()
        ):
            return compiled  # type: ignore[no-any-return]
    fresh = compiled_by(features)
    with _remembering:
        while len(memory) >= _REMEMBERED:
            del memory[next(iter(memory))]
        memory[key] = (dict(features), fresh)
    return fresh
