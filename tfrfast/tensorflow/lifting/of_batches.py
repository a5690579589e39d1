"""Lifts the parse out of a map() of batches: tfrfast decodes, tf.data runs the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from tfrfast.tensorflow import internals
from tfrfast.tensorflow.columns import TensorFeatures
from tfrfast.tensorflow.faults import reason_of
from tfrfast.tensorflow.history import Refusal
from tfrfast.tensorflow.lifting.cutting import cut
from tfrfast.tensorflow.lifting.finding import NOT_CONSTANT, find_parser
from tfrfast.tensorflow.lifting.inlining import joined
from tfrfast.tensorflow.lifting.sequences import batch_of_sequences
from tfrfast.tensorflow.reading import nodes
from tfrfast.tensorflow.recognition import (
    OF_SEQUENCES,
    SERIALIZED,
    ArrangedFeatures,
    ParsedColumns,
    columns_of,
)
from tfrfast.tensorflow.tracing import traced


class Divided(NamedTuple):
    """A map() of batches of records in two parts."""

    #: The decoded tensors, the arguments of the rest.
    features: TensorFeatures
    #: The map() of the rest.
    rest: Any


def divided(mapped: Any) -> Divided | Refusal:
    """Returns the parts of a map(), with the same elements."""
    try:
        return _divided(mapped)
    except Exception as error:  # TensorFlow runs the unchanged map
        return reason_of(error, "its parse was not taken out")


def _divided(mapped: Any) -> Divided | Refusal:
    function = nodes.function_of(mapped)
    if function is None or not tf.executing_eagerly():
        return Refusal("TensorFlow does not show its function")
    graph = joined([function.graph])
    if len(graph.inputs) - len(internals.captures_of(graph)) != 1:
        return Refusal("it is given more than records")
    found = find_parser(graph)
    if isinstance(found, Refusal):
        return found
    of_parser = batch_of_sequences if found.parser.type == OF_SEQUENCES else _batch_of_examples
    try:
        features = of_parser(found.parser, found.used)
    except (TypeError, ValueError):
        return Refusal("it parses features that only TensorFlow can parse")
    if features is None:
        return NOT_CONSTANT
    results = [internals.before_return(tensor) for tensor in graph.outputs]
    others = {op.name: _parse_of(op) for op in graph.get_operations() if op is not found.parser}
    others = {name: parse for name, parse in others.items() if parse is not None}
    rest = cut(graph, found.used, results, graph.control_outputs, replaced=others)
    return rest if isinstance(rest, Refusal) else Divided(features, nodes.calling(mapped, rest))


def _batch_of_examples(parser: Any, used: Sequence[Any]) -> TensorFeatures | None:
    columns = columns_of(parser)
    if columns is None:
        return None
    names = [tensor.name for tensor in used]
    return ArrangedFeatures(
        columns.features,
        lambda parsed: tuple(map(_tensors(columns, parsed).__getitem__, names)),
    )


def _parse_of(op: Any) -> Any:
    """Returns a function in place of an op that parses a vector of Examples, which are themselves
    in features. Returns None for other ops.
    """
    if op.type != "ParseExampleV2" or op.inputs[SERIALIZED].shape.rank != 1:
        return None
    try:
        features = _batch_of_examples(op, op.outputs)
    except (TypeError, ValueError):
        return None
    spec = tf.TensorSpec(op.inputs[SERIALIZED].shape, tf.string)
    return None if features is None else traced(features.parse, (spec,), {})


def _tensors(columns: ParsedColumns, parsed: dict[str, Any]) -> dict[str, Any]:
    """Returns the op's results, by the names of its outputs."""
    tensors: dict[str, Any] = {}
    for (kind, *names), key in columns.key_of.items():
        value = parsed[key]
        if kind == "SerializeSparse":
            parts = [value.indices, value.values, value.dense_shape]
        elif kind == "RaggedTensorToVariant":
            parts = [value.row_splits, value.values]
        else:
            parts = [value]
        tensors.update(zip(names, parts, strict=True))
    return tensors
