"""The columns of a scan, and the Arrow type of each."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tfrfast._native import ArrowField, FeatureSchema
from tfrfast.columns.arrow import arrow_formats
from tfrfast.features import (
    Bounds,
    FixedLen,
    FixedLenSequence,
    Image,
    Scaled,
    SerializedTensor,
    SparseIndexed,
    VarLen,
)
from tfrfast.features.compiled import Slot, schema_of
from tfrfast.features.compiling import compile_features, message_slot
from tfrfast.features.specs import number_type_of, shape_of, type_name_of, understand
from tfrfast.messages import MessageFeature

__all__ = ["ScanColumns", "scan_columns"]

# The content of a column: a feature's number in the schema, or "record" or "shard".
_Content = tuple[ArrowField, int | str]


@dataclass
class ScanColumns:
    """The columns of a scan, in order."""

    #: The arguments of scan_columns(), for pickling.
    made_of: tuple[Any, ...]
    slots: dict[str, Slot] = field(default_factory=dict)
    contents: dict[str, _Content] = field(default_factory=dict)

    def __reduce__(self) -> tuple[Any, ...]:
        return scan_columns, self.made_of

    def schema(self) -> FeatureSchema:
        return schema_of(self.slots)

    def struct(self) -> ArrowField:
        """The Arrow type of a batch."""
        return ArrowField("", "+s", children=[each for each, _ in self.contents.values()])

    def only(self, names: Sequence[str]) -> ScanColumns:
        """Returns these columns, in this order."""
        features, _, extras, tensors, text = self.made_of
        kept = [name for name in text if name in names]
        return scan_columns(features, names, extras, tensors, kept)

    def add(self, name: str, key: str, slot: Slot, column: ArrowField) -> None:
        if self.slots.setdefault(key, slot) != slot:
            raise ValueError(f"Feature '{key}' is requested in two ways that do not agree.")
        self.contents[name] = (column, list(self.slots).index(key))


def scan_columns(
    features: Mapping[str, Any],
    names: Sequence[str],
    extras: Mapping[str, str],
    tensors: bool = False,
    text: Sequence[str] = (),
) -> ScanColumns:
    """Returns the columns `names`. Each is a feature or one of `extras`."""
    columns = ScanColumns((dict(features), list(names), dict(extras), tensors, list(text)))
    _check_text(features, names, text)
    for name in names:
        if name in extras:
            columns.contents[name] = _extra_column(name, extras[name])
            continue
        spec, scaling = understand(name, features[name]), None
        if isinstance(spec, Scaled | Bounds):
            slots = compile_features({name: spec}).slots.values()
            scaling = next(slot.scaling for slot in slots if slot.scaling)
            spec = understand(name, spec.spec)
        if isinstance(spec, Image):
            raise ValueError(
                f"Feature {name!r}: a scan does not decode images. Scan the encoded image with "
                'tfr.FixedLen((), "bytes"), or hand a Loader\'s batches to Arrow.'
            )
        if isinstance(spec, MessageFeature):
            key, slot = message_slot(spec)
            leaf = name if spec.levels == 0 else "item"
            column = _leaf(leaf, spec.dtype, spec.is_text or name in text)
            for level in range(spec.levels):
                column = ArrowField(
                    name if level + 1 == spec.levels else "item", "+L", children=[column]
                )
            columns.add(name, key, slot, column)
        elif isinstance(spec, SerializedTensor):
            slot = compile_features({name: spec}).slots[name]
            if slot.is_ragged:
                raise ValueError(
                    f"Feature {name!r}: a scan takes serialized tensors of a known shape alone. "
                    "Hand a Loader's batches to Arrow."
                )
            fixed = FixedLen(slot.shape, number_type_of(name, spec.dtype), raw=True)
            columns.add(name, name, slot, _fixed_field(name, fixed, slot, tensors, name in text))
        elif isinstance(spec, FixedLen):
            slot = compile_features({name: spec}).slots[name]._replace(scaling=scaling)
            columns.add(name, name, slot, _fixed_field(name, spec, slot, tensors, name in text))
        elif isinstance(spec, FixedLenSequence):
            kind = type_name_of(name, spec.dtype)
            shape = shape_of(name, spec.shape)
            if 0 in shape:
                raise ValueError(
                    f"Feature {name!r}: a sequence of shapes without values has no length."
                )
            item = _nested("item", shape, _leaf("item", kind, name in text))
            slot = Slot("ragged", kind, scaling=scaling)
            columns.add(name, name, slot, _list_field(name, item))
        elif isinstance(spec, VarLen):
            kind = type_name_of(name, spec.dtype)
            if spec.partitions:
                raise ValueError(
                    f"Feature {name!r}: a scan does not divide rows. Scan the features that its "
                    "partitions name as columns of their own, with VarLen, or hand a Loader's "
                    "batches to Arrow."
                )
            key = name if spec.key is None else spec.key
            columns.add(
                name,
                key,
                Slot("ragged", kind, inferred=spec.inferred, scaling=scaling),
                _list_field(name, _leaf("item", kind, name in text)),
            )
        else:
            raise ValueError(_sparse_advice(name, spec))
    return columns


def _extra_column(name: str, what: str) -> _Content:
    if what == "record":
        return ArrowField(name, "l"), what
    return ArrowField(name, "i", dictionary=ArrowField("", "U")), what


def _check_text(features: Mapping[str, Any], names: Sequence[str], text: Sequence[str]) -> None:
    if isinstance(text, str):
        raise TypeError(f"text is a list of names: text=[{text!r}].")
    for name in text:
        if name not in names or name not in features:
            raise ValueError(f"text names {name!r}, which is not a feature among the columns.")
        spec = understand(name, features[name])
        if isinstance(spec, MessageFeature):
            holds_strings = spec.dtype == "bytes"
        else:
            is_raw = isinstance(spec, Image | SerializedTensor) or getattr(spec, "raw", False)
            holds_strings = not is_raw and type_name_of(name, spec.dtype) == "bytes"
        if not holds_strings:
            raise ValueError(f"text names {name!r}, which does not hold byte strings.")


def _fixed_field(name: str, spec: FixedLen, slot: Slot, tensors: bool, is_text: bool) -> ArrowField:
    has_default = slot.default_numbers is not None or slot.default_strings is not None
    if spec.raw:
        item = ArrowField("item", arrow_formats(name, np.dtype(spec.dtype)))
    else:
        item = _leaf("item", slot.type, is_text)
    if tensors and slot.shape and slot.type != "bytes":
        metadata = [
            ("ARROW:extension:name", "arrow.fixed_shape_tensor"),
            ("ARROW:extension:metadata", json.dumps({"shape": slot.shape})),
        ]
        size = f"+w:{math.prod(slot.shape)}"
        return ArrowField(name, size, nullable=has_default, children=[item], metadata=metadata)
    if not slot.shape:
        leaf = (
            arrow_formats(name, np.dtype(spec.dtype))
            if spec.raw
            else _format_of(slot.type, is_text)
        )
        return ArrowField(name, leaf, nullable=has_default)
    return _nested(name, slot.shape, item, nullable=has_default)


def _nested(
    name: str, shape: Sequence[int], item: ArrowField, *, nullable: bool = False
) -> ArrowField:
    """Returns `item` in fixed lists. The first dimension is the outermost."""
    for axis in range(len(shape) - 1, -1, -1):
        outermost = axis == 0
        item = ArrowField(
            name if outermost else "item",
            f"+w:{shape[axis]}",
            nullable=nullable and outermost,
            children=[item],
        )
    return item


def _list_field(name: str, item: ArrowField) -> ArrowField:
    return ArrowField(name, "+L", nullable=True, children=[item])


def _leaf(name: str, kind: str, is_text: bool) -> ArrowField:
    return ArrowField(name, _format_of(kind, is_text))


def _format_of(kind: str, is_text: bool) -> str:
    if kind == "bytes":
        return "U" if is_text else "Z"
    return arrow_formats("", np.dtype(kind))


def _sparse_advice(name: str, spec: SparseIndexed) -> str:
    keys = [spec.index_keys] if isinstance(spec.index_keys, str) else list(spec.index_keys)
    return (
        f"Feature {name!r}: Arrow has no sparse columns. Scan its positions and its values as "
        f"columns of their own, with VarLen: {', '.join(map(repr, [*keys, spec.value_key]))}."
    )
