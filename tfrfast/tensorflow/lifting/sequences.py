"""The features of SequenceExamples, as a traced parse has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from tfrfast.features.compiled import CompiledFeatures
from tfrfast.features.compiling import compile_features
from tfrfast.tensorflow.columns import TensorFeatures
from tfrfast.tensorflow.lifting.variable import Kind, ParsedPart, ParsedRecord
from tfrfast.tensorflow.recognition import SERIALIZED, constant_strings, dense_feature

# The inputs of ParseSequenceExampleV2 after the records: names for errors, then keys.
_KEYS = range(SERIALIZED + 1, SERIALIZED + 8)
_MAY_BE_MISSING = 8
_DEFAULTS = 9

# The outputs for each key of a group, as parts of one record. None: no column has the part. The op
# has the groups in this order, and within a group the first output of each key, the second, ...
_OUTPUTS: dict[str, tuple[Kind | None, ...]] = {
    "sparse": ("indices", "values", "shape"),
    "dense": ("row",),
    "ragged": ("values", None),
    "sparse list": (None, "values", None),
    "dense list": ("values", None),
    "ragged list": ("values", None, None),
}


class _Parsed(NamedTuple):
    features: dict[str, Any]
    #: The feature lists, and how their slots differ.
    lists: dict[str, dict[str, Any]]
    #: The key of each output of the op, its group, and its place among the key's outputs.
    meanings: dict[str, tuple[str, str, int]]


class SequenceTensors(TensorFeatures):
    """Outputs of a ParseSequenceExampleV2 of a batch."""

    def __init__(self, parsed: _Parsed, outputs: Sequence[Any]) -> None:
        super().__init__(compiled_sequences(parsed.features, parsed.lists))
        self._wanted = [(*parsed.meanings[each.name], each.dtype) for each in outputs]

    def assemble(self, columns: Sequence[Any]) -> Any:
        found = self.by_slot(columns)
        made = {
            key: _of_list(group, found[key], self._slots[key].shape)
            for key, group, *_ in self._wanted
        }
        return tuple(tf.cast(made[key][place], dtype) for key, _, place, dtype in self._wanted)


def _of_list(group: str, columns: list[Any], of_step: tuple[int, ...]) -> list[Any]:
    """Returns the op's outputs for a key."""
    if group == "dense list":
        values, splits, _ = columns
        padded = tf.raw_ops.RaggedTensorToTensor(
            shape=tf.constant([-1, -1, *of_step], tf.int64),
            values=tf.reshape(values, [-1, *of_step]),
            default_value=tf.zeros([], values.dtype),
            row_partition_tensors=[splits],
            row_partition_types=["ROW_SPLITS"],
        )
        return [padded, tf.slice(splits, [1], [-1]) - splits[:-1]]
    if group == "sparse list":
        values, *splits = columns
        sparse = tf.RaggedTensor.from_nested_row_splits(values, splits, validate=False).to_sparse()
        return [sparse.indices, sparse.values, sparse.dense_shape]
    return columns


def batch_of_sequences(parser: Any, used: Sequence[Any]) -> SequenceTensors | None:
    """Returns the used outputs of a ParseSequenceExampleV2 of a batch. Returns None if an input is
    not constant, or a key occurs twice.
    """
    parsed = _parsed(parser)
    return None if parsed is None else SequenceTensors(parsed, used)


def parsed_sequence(parser: Any) -> ParsedRecord | None:
    """Returns the features of a ParseSequenceExampleV2 of one record. Returns None if an input is
    not constant, or a key occurs twice.
    """
    parsed = _parsed(parser)
    if parsed is None:
        return None
    parts: dict[str, ParsedPart] = {}
    for name, (key, group, place) in parsed.meanings.items():
        kind = _OUTPUTS[group][place]
        if kind is not None:
            parts[name] = ParsedPart(key, kind, parsed.lists.get(key, {}).get("shape", ()))
    return ParsedRecord(parsed.features, parts, parsed.lists)


def compiled_sequences(
    features: dict[str, Any], lists: dict[str, dict[str, Any]]
) -> CompiledFeatures:
    """Raises ValueError or TypeError for features that only TensorFlow can parse."""
    compiled = compile_features(features)
    compiled.slots = {
        key: slot._replace(**lists.get(key, {}), part="feature list" if key in lists else "context")
        for key, slot in compiled.slots.items()
    }
    return compiled


def _parsed(parser: Any) -> _Parsed | None:
    found = [constant_strings(parser.inputs[each]) for each in _KEYS]
    may_be_missing = tf.get_static_value(parser.inputs[_MAY_BE_MISSING])
    if any(each is None for each in found) or found[0] or may_be_missing is None:
        return None
    keys = dict(zip(_OUTPUTS, (each or [] for each in found[1:]), strict=True))
    if len(set().union(*keys.values())) < sum(map(len, keys.values())):
        return None

    def of_each(group: str, *attributes: str) -> Any:
        return zip(keys[group], *map(parser.get_attr, attributes), strict=True)

    features: dict[str, Any] = {}
    lists: dict[str, dict[str, Any]] = {}
    for key, dtype in of_each("sparse", "context_sparse_types"):
        features[key] = tf.io.VarLenFeature(dtype)
    fixed = of_each("dense", "context_dense_shapes", "Tcontext_dense")
    for (key, shape, dtype), default in zip(fixed, parser.inputs[_DEFAULTS:], strict=True):
        features[key] = dense_feature(shape, dtype, default)
        if not isinstance(features[key], tf.io.FixedLenFeature):
            return None
    for key, dtype in of_each("ragged", "context_ragged_value_types"):
        features[key] = tf.io.RaggedFeature(dtype)
    for key, dtype in (
        *of_each("sparse list", "feature_list_sparse_types"),
        *of_each("ragged list", "feature_list_ragged_value_types"),
        *of_each("dense list", "feature_list_dense_types"),
    ):
        features[key], lists[key] = tf.io.RaggedFeature(dtype), {}
    steps = of_each("dense list", "feature_list_dense_shapes")
    for (key, shape), is_optional in zip(steps, may_be_missing.tolist(), strict=True):
        of_step = tf.TensorShape(shape)
        if not of_step.num_elements():
            return None
        of_step = tuple(of_step.as_list())
        lists[key] = {"layout": "padded", "shape": of_step, "required": not is_optional}

    outputs = iter(parser.outputs)
    meanings = {
        output.name: (key, group, place)
        for group, kinds in _OUTPUTS.items()
        for place in range(len(kinds))
        for key, output in zip(keys[group], outputs, strict=False)
    }
    return _Parsed(features, lists, meanings)
