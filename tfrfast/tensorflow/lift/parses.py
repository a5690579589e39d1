"""Finds the parse in a function: the only op that takes the records, and the ops that parse its
features as tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import tensorflow as tf

from tfrfast.errors import FeatureError
from tfrfast.example.parsing import parse_example
from tfrfast.features import FixedLen, SerializedTensor
from tfrfast.features.compiling import compile_features
from tfrfast.tensorflow.lift.copying import needed, origin
from tfrfast.tensorflow.reasons import Refusal, RefusedError

PARSER = "ParseExampleV2"
PARSERS = {"ParseExample", PARSER, "ParseSingleExample", "ParseSequenceExampleV2"}
# The inputs of ParseExampleV2 before the defaults.
SERIALIZED, _NAMES, _SPARSE, _DENSE, _RAGGED, _DEFAULTS = range(6)
_NOT_CONSTANT = Refusal(
    "the keys, the shapes or the defaults of the parse are not constants, or it parses a "
    "feature in two ways",
)


@dataclass(frozen=True)
class Parse:
    """What an op parses."""

    op: Any
    #: The features by key, as specs of tf.io.
    features: dict[str, Any]
    #: By the names of the op's outputs: the key, and the place among the tensors of this feature.
    #: These are the values of a dense feature; the indices, the values and the shape of a sparse
    #: feature; or the values and the splits of a ragged feature.
    outputs: dict[str, tuple[str, int]]
    #: The outputs that the function uses.
    used: tuple[Any, ...] = ()


def find_parse(graph: Any) -> Parse:
    """Returns the parse in a graph whose first input is a record, or a batch of records.

    Raises RefusedError.
    """
    operations, record = needed(graph, graph.outputs), graph.inputs[0]
    parsers = [each for each in operations if each.type in PARSERS]
    if not parsers:
        raise RefusedError("it does not parse Examples")
    of_record = [each for each in parsers if origin(each.inputs[SERIALIZED]) is record]
    if len(of_record) > 1:
        raise RefusedError("tfrfast does not lift two parses", "one call, with all features")
    if not of_record:
        raise RefusedError("it changes the record before it parses it")
    (parser,) = of_record
    if parser.type != PARSER:
        raise RefusedError(
            "tfrfast does not lift a parse of other records, or by an op of TensorFlow 1"
        )
    uses = [
        op
        for op in operations
        for each in op.inputs
        if origin(each) is record and (op.type != "Identity" or op.control_inputs)
    ]
    if len(uses) > 1 or any(origin(each) is record for each in graph.outputs):
        raise RefusedError("tfrfast does not lift a parse beside other uses of the record")
    if parser.control_inputs or any(parser in each.control_inputs for each in operations):
        raise RefusedError("it does something before or after the parse by control dependencies")
    parse = parse_of(parser)
    if parse is None:
        raise RefusedError(_NOT_CONSTANT)
    wanted = {each.name for op in operations for each in op.inputs}
    wanted |= {each.name for each in graph.outputs}
    used = tuple(each for each in parser.outputs if each.name in wanted)
    return Parse(parser, parse.features, parse.outputs, used)


def parse_of(parser: Any) -> Parse | None:
    """Returns the parse of a ParseExampleV2; None if an input is not constant, or a key occurs
    twice.
    """
    keys = [_strings(parser.inputs[each]) for each in (_NAMES, _SPARSE, _DENSE, _RAGGED)]
    if any(each is None for each in keys) or keys[0]:
        return None
    sparse, dense, ragged = groups = [each or [] for each in keys[1:]]
    if len({*sparse, *dense, *ragged}) < sum(map(len, groups)):
        return None
    features: dict[str, Any] = {}
    for key, dtype in zip(sparse, parser.get_attr("sparse_types"), strict=True):
        features[key] = tf.io.VarLenFeature(dtype)
    attributes = parser.get_attr("dense_shapes"), parser.get_attr("Tdense")
    for key, *described in zip(dense, *attributes, parser.inputs[_DEFAULTS:], strict=True):
        features[key] = _dense_feature(*described)
        if features[key] is None:
            return None
    attributes = parser.get_attr("ragged_value_types"), parser.get_attr("ragged_split_types")
    for key, values, splits in zip(ragged, *attributes, strict=True):
        features[key] = tf.io.RaggedFeature(values, row_splits_dtype=splits)
    # The first output of each key of a group, the second, ...
    meanings = [
        (key, place)
        for group, count in zip(groups, (3, 1, 2), strict=True)
        for place in range(count)
        for key in group
    ]
    names = (output.name for output in parser.outputs)
    return Parse(parser, features, dict(zip(names, meanings, strict=True)))


def _dense_feature(given_shape: Any, dtype: Any, tensor: Any) -> Any:
    """Returns None for a default that is not constant, and for a shape without values."""
    shape = tf.TensorShape(given_shape)
    if tensor.op.type == "Reshape":
        tensor = tensor.op.inputs[0]
    default = tf.get_static_value(tensor)
    if default is None or shape.rank is None:
        return None
    if shape.rank and shape[0] is None:
        return tf.io.FixedLenSequenceFeature(
            shape[1:].as_list(), dtype, allow_missing=True, default_value=default.reshape(())
        )
    if not shape.is_fully_defined() or shape.num_elements() == 0:
        return None
    return tf.io.FixedLenFeature(shape.as_list(), dtype, default if default.size else None)


def _strings(tensor: Any) -> list[str] | None:
    """Returns the strings of a constant tensor; None for other tensors."""
    known = tf.get_static_value(tensor)
    try:
        return None if known is None else [each.decode() for each in known.reshape(-1).tolist()]
    except UnicodeDecodeError:
        return None


#: Returns the first records, from which shapes are taken that no function tells.
Look = Callable[[], Sequence[bytes]]


class Serialized(NamedTuple):
    """A feature whose only use is to be parsed as a tensor."""

    spec: SerializedTensor
    shape: tuple[int, ...]
    #: The names of the parsed tensors.
    parsed: tuple[str, ...]


def serialized_in(graph: Any, parse: Parse, look: Look) -> dict[str, Serialized]:
    """Returns the serialized tensors among the used features, by key.

    All rows must have the shape of the first records. A batch with another row is made again by
    TensorFlow, like every batch with a record that does not fit.
    """
    parsers = {each.name: _parsers_of(graph, each) for each in parse.used}
    keys = {parse.outputs[name][0]: ops for name, ops in parsers.items() if ops}
    keys = {key: ops for key, ops in keys.items() if _is_string(parse.features[key])}
    if not keys:
        return {}
    try:
        strings = parse_example(look(), {key: FixedLen((), "bytes") for key in keys})
    except FeatureError:  # TensorFlow tells its error when it reads the record
        return {}
    found = {key: _serialized(ops, strings[key].tolist()) for key, ops in keys.items()}
    return {key: each for key, each in found.items() if each is not None}


def _is_string(feature: Any) -> bool:
    is_one = isinstance(feature, tf.io.FixedLenFeature) and not feature.shape
    return is_one and feature.dtype == tf.string and feature.default_value is None


def _parsers_of(graph: Any, tensor: Any) -> list[Any]:
    """Returns the ops that parse a string; none if the string has another use."""
    found: list[Any] = []
    if any(tensor is each for each in graph.outputs):
        return []
    for op in tensor.consumers():
        ops = [op] if op.type == "ParseTensor" else []
        if op.type == "Identity":
            ops = _parsers_of(graph, op.outputs[0])
        waits = any(op in each.control_inputs for each in graph.get_operations())
        if not ops or op.control_inputs or waits:
            return []
        found += ops
    return found


def _serialized(ops: Sequence[Any], strings: Sequence[bytes]) -> Serialized | None:
    types = {each.get_attr("out_type") for each in ops}
    try:
        shapes = {tuple(tf.io.parse_tensor(each, *types).shape) for each in strings}
        (shape,), (dtype,) = shapes, types
        spec = SerializedTensor(shape, dtype)
        compile_features({"": spec})
    except (TypeError, ValueError, tf.errors.InvalidArgumentError):
        return None
    outputs = [each.outputs[0] for each in ops]
    if not all(each.shape.is_compatible_with(shape) for each in outputs):
        return None
    return Serialized(spec, shape, tuple(each.name for each in outputs))
