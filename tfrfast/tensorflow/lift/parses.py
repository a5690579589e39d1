"""Finds the parse in a function: the only op that takes the records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow.lift.copying import needed, origin
from tfrfast.tensorflow.reasons import Refusal

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


def find_parse(graph: Any) -> Parse | Refusal:
    """Returns the parse in a graph whose first input is a record, or a batch of records."""
    operations, record = needed(graph, graph.outputs), graph.inputs[0]
    parsers = [each for each in operations if each.type in PARSERS]
    if not parsers:
        return Refusal("it does not parse Examples")
    of_record = [each for each in parsers if origin(each.inputs[SERIALIZED]) is record]
    if len(of_record) > 1:
        return Refusal("it parses twice", "one call, with all features")
    if not of_record:
        return Refusal("it changes the record before it parses it")
    (parser,) = of_record
    if parser.type != PARSER:
        return Refusal("it parses other records than Examples, or by an op of TensorFlow 1")
    uses = [
        op
        for op in operations
        for each in op.inputs
        if origin(each) is record and (op.type != "Identity" or op.control_inputs)
    ]
    if len(uses) > 1 or any(origin(each) is record for each in graph.outputs):
        return Refusal("it uses the record for more than the parse")
    if parser.control_inputs or any(parser in each.control_inputs for each in operations):
        return Refusal("it does something before or after the parse by control dependencies")
    parse = parse_of(parser)
    if parse is None:
        return _NOT_CONSTANT
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
