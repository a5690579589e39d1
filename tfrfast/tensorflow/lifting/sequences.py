"""The features of SequenceExamples, as a traced parse has them."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrfast.tensorflow.lifting.variable import Kind, ParsedPart, ParsedRecord
from tfrfast.tensorflow.recognition import SERIALIZED, constant_strings, dense_feature

# The inputs of ParseSequenceExampleV2 after the records: names for errors, then keys.
_KEYS = range(SERIALIZED + 1, SERIALIZED + 8)
_MAY_BE_MISSING = 8
_DEFAULTS = 9


def parsed_sequence(parser: Any) -> ParsedRecord | None:
    """Returns the features of a ParseSequenceExampleV2. Returns None if an input is not constant,
    or a key occurs twice.
    """
    found = [constant_strings(parser.inputs[each]) for each in _KEYS]
    may_be_missing = tf.get_static_value(parser.inputs[_MAY_BE_MISSING])
    if any(each is None for each in found) or found[0] or may_be_missing is None:
        return None
    sparse, dense, ragged, listed_sparse, listed_dense, listed_ragged = keys = [
        each or [] for each in found[1:]
    ]
    if len(set().union(*keys)) < sum(map(len, keys)):
        return None

    def of_each(keys: list[str], *attributes: str) -> Any:
        return zip(keys, *map(parser.get_attr, attributes), strict=True)

    features: dict[str, Any] = {}
    lists: dict[str, dict[str, Any]] = {}
    for key, dtype in of_each(sparse, "context_sparse_types"):
        features[key] = tf.io.VarLenFeature(dtype)
    fixed = of_each(dense, "context_dense_shapes", "Tcontext_dense")
    for (key, shape, dtype), default in zip(fixed, parser.inputs[_DEFAULTS:], strict=True):
        features[key] = dense_feature(shape, dtype, default)
        if not isinstance(features[key], tf.io.FixedLenFeature):
            return None
    for key, dtype in of_each(ragged, "context_ragged_value_types"):
        features[key] = tf.io.RaggedFeature(dtype)
    for key, dtype in (
        *of_each(listed_sparse, "feature_list_sparse_types"),
        *of_each(listed_ragged, "feature_list_ragged_value_types"),
        *of_each(listed_dense, "feature_list_dense_types"),
    ):
        features[key], lists[key] = tf.io.RaggedFeature(dtype), {}
    steps = of_each(listed_dense, "feature_list_dense_shapes")
    for (key, shape), is_optional in zip(steps, may_be_missing.tolist(), strict=True):
        of_step = tf.TensorShape(shape)
        if not of_step.num_elements():
            return None
        of_step = tuple(of_step.as_list())
        lists[key] = {"layout": "padded", "shape": of_step, "required": not is_optional}

    # The meaning of each output, in order. None: no column has it.
    meanings: tuple[tuple[list[str], Kind | None], ...] = (
        *((sparse, "indices"), (sparse, "values"), (sparse, "shape")),
        *((dense, "row"), (ragged, "values"), (ragged, None)),
        *((listed_sparse, None), (listed_sparse, "values"), (listed_sparse, None)),
        *((listed_dense, "values"), (listed_dense, None)),
        *((listed_ragged, "values"), (listed_ragged, None), (listed_ragged, None)),
    )
    outputs = iter(parser.outputs)
    parts: dict[str, ParsedPart] = {}
    for each, kind in meanings:
        for key, output in zip(each, outputs, strict=False):
            if kind is not None:
                parts[output.name] = ParsedPart(key, kind, lists.get(key, {}).get("shape", ()))
    return ParsedRecord(features, parts, lists)
