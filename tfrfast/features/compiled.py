"""Compiled features: the slots of the native parser, and the columns that are made from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tfrfast._native import (
    ExampleParser,
    FeatureSchema,
    FeatureSpec,
    ImageSpec,
    MessageField,
    MessagePath,
)
from tfrfast.columns import Batch, Bytes, Column, Pictures, Ragged, Sparse
from tfrfast.columns.batch import Crops
from tfrfast.features import Features
from tfrfast.features.packing import (
    STARTS,
    PackedFacts,
    PackedFeatures,
    positions_slot,
    segments_slot,
)
from tfrfast.messages import MessageFeature
from tfrfast.messages.message import PathField

__all__ = ["CROP_FIELDS", "CompiledFeatures", "NativeColumn", "Slot", "column_of", "schema_of"]

#: The numbers of Batch.crops, as the native parser returns them.
CROP_FIELDS = (
    "top",
    "left",
    "height",
    "width",
    "image_height",
    "image_width",
    "flipped",
    "damaged",
)

# (values, offsets, row splits, indices, shape, crops), as ExampleParser returns them. The shape of
# pictures of any size is an array. The row splits are a list if rows hold rows.
NativeColumn = tuple[Any, Any, Any, Any, Any, Any]


class Slot(NamedTuple):
    """A feature of the record, in the native parser's terms."""

    layout: str
    type: str
    shape: tuple[int, ...] = ()
    default_numbers: bytes | None = None
    default_strings: tuple[bytes, ...] | None = None
    raw_bytes: int = 0
    required: bool = False
    #: True if other records than those that were looked at may not fit.
    inferred: bool = False
    #: The arguments of a native ImageSpec.
    image: dict[str, Any] | None = None
    #: Of packed features, and of facts about them: the number of the budget of tokens.
    budget: int = 0
    #: The lines of a native Scaling, and whether the zeros of padding stay.
    scaling: tuple[tuple[tuple[float, float, float, float, float], ...], bool] | None = None

    #: Of a field of a message that is not an Example.
    path: MessageFeature | None = None
    #: The number of TensorFlow's type and the shape of serialized tensors. -1 is any size.
    tensor: tuple[int, tuple[int, ...]] | None = None

    @property
    def frames(self) -> int:
        """The number of pictures in a row that has a dimension for them, or 0."""
        return 0 if self.image is None else int(self.image["frames"])

    @property
    def levels(self) -> int:
        """The number of levels of row splits of a ragged column."""
        return self.path.levels if self.path is not None else 1

    @property
    def is_ragged(self) -> bool:
        """True if rows of the column differ in length."""
        return self.layout == "ragged"


@dataclass
class CompiledFeatures:
    """A feature description in the native parser's terms."""

    #: The specs that were compiled.
    specs: Features = field(default_factory=dict)
    slots: dict[str, Slot] = field(default_factory=dict)
    builders: dict[str, Callable[[dict[str, Column]], Column]] = field(default_factory=dict)
    #: True after the names were compared with the names in some records.
    names_checked: bool = False
    #: The features that are packed into rows of tokens.
    packing: PackedFeatures | None = None
    #: How many columns are made from each slot.
    wanted: Counter[str] = field(default_factory=Counter)

    @cached_property
    def schema(self) -> FeatureSchema:
        return schema_of(self.slots)

    @cached_property
    def parser(self) -> ExampleParser:
        return ExampleParser(self.schema)

    def assemble(self, native: Sequence[NativeColumn]) -> dict[str, Column]:
        """Returns the requested columns, made from the parsed slots."""
        parsed = self._parsed(native)
        return {name: build(parsed) for name, build in self.builders.items()}

    def _parsed(self, native: Sequence[NativeColumn]) -> dict[str, Column]:
        return {
            name: column_of(column, slot.frames)
            for (name, slot), column in zip(self.slots.items(), native, strict=True)
        }

    def crops(self, native: Sequence[NativeColumn]) -> dict[str, Crops]:
        """Returns the windows of the images, by feature."""
        return {
            name: dict(zip(CROP_FIELDS, _by_row(column[-1].T, slot.frames), strict=True))
            for (name, slot), column in zip(self.slots.items(), native, strict=True)
            if column[-1] is not None
        }

    def batch(
        self,
        native: Sequence[NativeColumn],
        indices: npt.NDArray[np.int64],
        valid: npt.NDArray[np.bool_],
        source_starts: npt.NDArray[np.int64] | None,
    ) -> Batch:
        """Returns a batch of the requested columns."""
        parsed = self._parsed(native)
        columns = {name: build(parsed) for name, build in self.builders.items()}
        batch = Batch(columns, indices, valid, source_starts, self.crops(native))
        if self.packing is not None:
            batch._packed = PackedFacts(self.packing, parsed)
        return batch

    def packed(
        self, features: tuple[tuple[str, ...], ...], tokens: Sequence[int], keys: tuple[str, str]
    ) -> CompiledFeatures:
        """Returns these features, of which some are packed into rows of tokens."""
        slots, builders = dict(self.slots), dict(self.builders)
        for budget, names in enumerate(features):
            for name in names:
                slots[name] = slots[name]._replace(layout="packed", budget=budget)
                builders[name] = itemgetter(name)
            slots[segments_slot(budget)] = Slot("segments", "int32", budget=budget)
            slots[positions_slot(budget)] = Slot("positions", "int32", budget=budget)
        slots[STARTS] = Slot("starts", "int64")
        return CompiledFeatures(
            self.specs,
            slots,
            builders,
            self.names_checked,
            PackedFeatures(features, tuple(tokens), keys),
        )

    @property
    def is_of_message(self) -> bool:
        """True if records hold another message than an Example."""
        return any(slot.path is not None for slot in self.slots.values())

    def needs_draws(self) -> bool:
        """Whether an image is cropped or flipped at random."""
        images = [slot.image for slot in self.slots.values() if slot.image is not None]
        return any(image["crop"] == "random" or image["flip"] for image in images)

    def requires(self, key: str) -> bool:
        """True if a record without this feature is an error."""
        slot = self.slots[key]
        has_default = slot.default_numbers is not None or slot.default_strings is not None
        return (slot.layout == "fixed" or slot.type in ("image", "tensor")) and not has_default

    def want(self, key: str, slot: Slot) -> None:
        """Adds a feature of the record. Several columns may be made from it."""
        self.wanted[key] += 1
        known = self.slots.get(key)
        if known is not None and known != slot:
            variable = {known.layout, slot.layout} == {"ragged", "sparse"}
            if not variable or known.type != slot.type:
                raise ValueError(f"Feature '{key}' is requested in two ways that do not agree.")
            slot = slot._replace(layout="ragged")
        self.slots[key] = slot


_Oneofs = dict[int, list[MessageField]]


def schema_of(slots: dict[str, Slot]) -> FeatureSchema:
    specs = []
    oneofs: _Oneofs = {}
    for name, slot in slots.items():
        image = None if slot.image is None else ImageSpec(**slot.image)
        path = None if slot.path is None else _native_path(slot.path, oneofs)
        specs.append(FeatureSpec(name=name, **slot._asdict() | {"image": image, "path": path}))
    return FeatureSchema(specs)


def _native_path(feature: MessageFeature, oneofs: _Oneofs) -> MessagePath:
    fields = [_native_field(field, oneofs) for field in feature.fields]
    return MessagePath(feature.message, fields, feature.content)


def _native_field(field: PathField, oneofs: _Oneofs) -> MessageField:
    shared = id(field.oneof)  # by all members
    if shared not in oneofs:
        oneofs[shared] = [_native_field(each, oneofs) for each in field.oneof]
    entry = [_native_field(each, oneofs) for each in field.entry]
    return MessageField(**field._asdict() | {"oneof": oneofs[shared], "entry": entry})


def _by_row(numbers: Any, frames: int) -> Any:
    """Returns numbers of pictures, of which each row has some frames, by field and row."""
    shaped = numbers.reshape(len(numbers), -1, frames) if frames else numbers
    return np.ascontiguousarray(shaped)


def column_of(native: NativeColumn, frames: int = 0) -> Column:
    values, offsets, splits, indices, shape, _ = native
    if isinstance(shape, np.ndarray):
        return Pictures(values, splits, shape.reshape(-1, frames, 3) if frames else shape)
    if offsets is not None:
        rows_differ = splits is not None or indices is not None
        values = Bytes(values, offsets, None if rows_differ else shape)
    if isinstance(splits, list):
        for each in reversed(splits):
            values = Ragged(values, each)
        return values  # type: ignore[no-any-return]
    if splits is not None:
        return Ragged(values, splits)
    if indices is not None:
        return Sparse(indices, values, np.array(shape, np.int64))
    return values  # type: ignore[no-any-return]
