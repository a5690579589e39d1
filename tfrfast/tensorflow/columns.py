"""Features as tensors: the ops' outputs, the dense, ragged and sparse tensors made of them, and
datasets of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

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
from tfrfast.features.compiled import CROP_FIELDS, CompiledFeatures, Slot
from tfrfast.features.compiling import message_slot
from tfrfast.features.specs import number_type_of, shape_of, type_name_of, understand
from tfrfast.messages import MessageFeature
from tfrfast.tensorflow import internals
from tfrfast.tensorflow.build.functions import made_once, parallel_map
from tfrfast.tensorflow.library import ops

_PARTITIONS = {
    "row_lengths": tf.io.RaggedFeature.RowLengths,
    "row_splits": tf.io.RaggedFeature.RowSplits,
    "row_starts": tf.io.RaggedFeature.RowStarts,
    "row_limits": tf.io.RaggedFeature.RowLimits,
    "value_rowids": tf.io.RaggedFeature.ValueRowIds,
    "uniform_row_length": tf.io.RaggedFeature.UniformRowLength,
}


class TensorFeatures:
    """A compiled feature description, for the ops and as tensors."""

    def __init__(self, compiled: CompiledFeatures, *, has_order: bool = False) -> None:
        if compiled.needs_draws() and not has_order:
            raise ValueError(
                "An image that is cropped or flipped at random takes its draws from the order of a "
                "Loader: use tfr.Loader(...).to_tf_dataset()."
            )
        self._slots: dict[str, Slot] = compiled.slots
        self._packing = compiled.packing
        self._specs = {name: understand(name, spec) for name, spec in compiled.specs.items()}
        self._types = {name: self._type_of(name) for name in self._slots}
        #: The description that the ops read.
        self.text = compiled.schema.encode()
        self.column_types = [
            each for name, slot in self._slots.items() for each in self._outputs_of(name, slot)
        ]
        #: Equal only for features that make the same tensors of the same records. The values of
        #: defaults are in the text. Subclasses make other tensors, and may set it.
        self._identity: Any = object()
        if type(self) is TensorFeatures:
            self._identity = self.text, repr(self._specs)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._identity == self._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    def _type_of(self, name: str) -> Any:
        """Returns the tensor type of a slot's values."""
        spec = self._specs.get(name)
        if self._slots[name].type == "raw":
            assert isinstance(spec, FixedLen)
            if not (dtype := np.dtype(spec.dtype)).isnative:
                raise TypeError(f"Feature {name!r}: TensorFlow has no type for {dtype}.")
            return tf.as_dtype(dtype)
        if self._slots[name].type == "tensor":
            return tf.as_dtype(number_type_of(name, self._specs[name].dtype))
        if self._slots[name].type == "image":
            assert isinstance(spec, Image)
            return tf.as_dtype(spec.dtype)
        kind = self._slots[name].type
        return tf.string if kind == "bytes" else tf.as_dtype(kind)

    def _outputs_of(self, name: str, slot: Slot) -> list[Any]:
        values = self._types[name]
        if slot.type == "image":
            return [values, tf.int32]
        if slot.is_ragged:
            return [values, *[tf.int64] * slot.levels]
        if slot.layout == "sparse":
            return [tf.int64, values, tf.int64]
        return [values]

    def shapes(self, rows: int | None) -> list[list[int | None]]:
        """Returns the shapes of an op's outputs; `rows` is None if unknown."""
        if self._packing is None:
            return [each for slot in self._slots.values() for each in _shapes_of(slot, rows)]
        shapes: list[list[int | None]] = []
        for slot in self._slots.values():
            if slot.layout in ("packed", "segments", "positions"):
                shapes.append([rows, self._packing.tokens[slot.budget]])
            elif slot.layout == "starts":
                shapes.append([None, 2 + len(self._packing.tokens)])
            else:  # any number of records
                shapes += _shapes_of(slot, None)
        return shapes

    def shaped(self, outputs: Sequence[Any], rows: int | None) -> tuple[Any, ...]:
        """Returns an op's outputs with their shapes checked."""
        return tuple(map(tf.ensure_shape, outputs, self.shapes(rows)))

    def assemble(self, columns: Sequence[Any]) -> dict[str, Any]:
        """Returns the requested features, made from the outputs of shaped()."""
        return self.with_crops(columns)[0]

    def with_crops(self, columns: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Returns the requested features, and how each image was cut."""
        parsed: dict[str, Any] = {}
        crops: dict[str, Any] = {}
        left = iter(columns)
        for name, slot in self._slots.items():
            outputs = [next(left) for _ in self._outputs_of(name, slot)]
            if slot.type == "image":
                values, numbers = outputs
                fields = tf.unstack(numbers, axis=1)
                is_ragged = slot.layout == "ragged"
                parsed[name] = _pictures(values, slot, *fields[2:4]) if is_ragged else values
                if slot.frames:
                    fields = [tf.reshape(each, [-1, slot.frames]) for each in fields]
                crops[name] = dict(zip(CROP_FIELDS, fields, strict=True))
            elif slot.is_ragged:
                values, *splits = outputs
                parsed[name] = tf.RaggedTensor.from_nested_row_splits(
                    values, splits, validate=False
                )
            elif slot.layout == "sparse":
                parsed[name] = tf.SparseTensor(*outputs)
            else:
                (parsed[name],) = outputs
        built = {name: self._build(name, spec, parsed) for name, spec in self._specs.items()}
        return built if self._packing is None else built | self._packing.facts(parsed), crops

    def _build(self, name: str, spec: Any, parsed: dict[str, Any]) -> Any:
        if isinstance(spec, Scaled | Bounds):
            spec = understand(name, spec.spec)
        if isinstance(spec, (FixedLen, FixedLenSequence, Image, SerializedTensor)):
            return parsed[name]
        if isinstance(spec, MessageFeature):
            return parsed[message_slot(spec)[0]]
        if isinstance(spec, SparseIndexed):
            return _placed(name, spec, parsed)
        column = parsed[name if spec.key is None else spec.key]
        if self._slots[name if spec.key is None else spec.key].layout == "packed":
            return column
        if spec.sparse:
            return column.to_sparse() if isinstance(column, tf.RaggedTensor) else column
        return _divided(name, spec, parsed)

    def parse(self, records: Any) -> dict[str, Any]:
        """Returns `tf.io.parse_example`'s result for a vector of serialized Examples."""
        columns = ops.tfrfast_parse_example(
            records=records, features=tf.constant(self.text), column_types=self.column_types
        )
        return self.assemble(self.shaped(columns, records.shape[0]))


def _shapes_of(slot: Slot, rows: int | None) -> list[list[int | None]]:
    """Returns the shapes of a slot's outputs."""
    if slot.type == "image":
        pixels: list[int | None] = [None]
        if slot.layout == "fixed":
            pixels = [rows, *slot.shape]
        pictures = rows if rows is None else rows * max(slot.frames, 1)
        return [pixels, [pictures, len(CROP_FIELDS)]]
    if slot.is_ragged:
        of_step = () if slot.tensor is None else slot.tensor[1][1:]
        inner: list[list[int | None]] = [[None]] * (slot.levels - 1)
        return [[None, *of_step], [None if rows is None else rows + 1], *inner]
    if slot.layout == "sparse":
        return [[None, 2], [None], [2]]
    steps = [None] if slot.layout == "padded" else []
    return [[rows, *steps, *slot.shape]]


def _pictures(values: Any, slot: Slot, heights: Any, widths: Any) -> Any:
    """Returns pictures of any size, from their pixels end to end."""
    assert slot.image is not None
    heights, widths = tf.cast(heights, tf.int64), tf.cast(widths, tf.int64)
    pixels = tf.reshape(values, [-1, slot.image["channels"]])
    lengths = [heights, tf.repeat(widths, heights)]
    pictures = tf.RaggedTensor.from_nested_row_lengths(pixels, lengths, validate=False)
    if not slot.frames:
        return pictures
    return tf.RaggedTensor.from_uniform_row_length(pictures, slot.frames, validate=False)


def _placed(name: str, spec: SparseIndexed, parsed: dict[str, Any]) -> Any:
    one = isinstance(spec.index_keys, str)
    size = shape_of(name, spec.size)
    feature = tf.io.SparseFeature(
        index_key=spec.index_keys if one else list(spec.index_keys),
        value_key=spec.value_key,
        dtype=parsed[spec.value_key].dtype,
        size=size[0] if one else list(size),
        already_sorted=spec.already_sorted,
    )
    keys = [spec.index_keys] if one else spec.index_keys
    sparse = {key: parsed[key].to_sparse() for key in {*keys, spec.value_key}}
    return _composite(name, feature, sparse)


def _divided(name: str, spec: VarLen, parsed: dict[str, Any]) -> Any:
    splits = tf.as_dtype(spec.splits_dtype)
    if not spec.partitions:
        return parsed[name if spec.key is None else spec.key].with_row_splits_dtype(splits)
    feature = tf.io.RaggedFeature(
        dtype=tf.as_dtype(type_name_of(name, spec.dtype).replace("bytes", "string")),
        value_key=spec.key,
        partitions=[_PARTITIONS[how](argument) for how, argument in spec.partitions],
        row_splits_dtype=splits,
    )
    keys = {name if spec.key is None else spec.key}
    keys |= {argument for _, argument in spec.partitions if isinstance(argument, str)}
    return _composite(
        name, feature, {key: parsed[key].with_row_splits_dtype(splits) for key in keys}
    )


def _composite(name: str, feature: Any, tensors: dict[str, Any]) -> Any:
    """Returns a composite feature, made of flat features by TensorFlow's own code."""
    return internals.composite_features({name: feature}, tensors)[name]


class ParsedDataset(tf.data.Dataset):  # type: ignore[misc]
    """Batches of records, parsed by tfrfast."""

    def __init__(self, records: Any, features: TensorFeatures) -> None:
        self._records, self.features = records, features
        self._made = made_once(_parsed, (features,), records)
        super().__init__(internals.variant_of(self._made))

    def _inputs(self) -> list[Any]:
        return [self._records]

    @property
    def element_spec(self) -> Any:
        return self._made.element_spec


def _parsed(features: TensorFeatures, records: Any) -> Any:
    return parallel_map(records, features.parse)
