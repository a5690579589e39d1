"""Lifts the parse out of a map() of batches: tfrfast decodes, tf.data runs the rest."""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from tfrfast.tensorflow import internals
from tfrfast.tensorflow.columns import TensorFeatures
from tfrfast.tensorflow.faults import reason_of
from tfrfast.tensorflow.history import Refusal
from tfrfast.tensorflow.lifting.cutting import cut
from tfrfast.tensorflow.lifting.finding import NOT_CONSTANT, find_parser
from tfrfast.tensorflow.lifting.inlining import joined
from tfrfast.tensorflow.reading import nodes
from tfrfast.tensorflow.recognition import OF_SEQUENCES, ParsedColumns, arranged, columns_of


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
    if found.parser.type == OF_SEQUENCES:
        return Refusal("it parses batches of SequenceExamples")
    columns = columns_of(found.parser)
    if columns is None:
        return NOT_CONSTANT
    names = [tensor.name for tensor in found.used]
    features = arranged(
        columns.features,
        lambda parsed: tuple(map(_tensors(columns, parsed).__getitem__, names)),
    )
    if features is None:
        return Refusal("it parses features that only TensorFlow can parse")
    results = [internals.before_return(tensor) for tensor in graph.outputs]
    rest = cut(graph, found.used, results, graph.control_outputs)
    return rest if isinstance(rest, Refusal) else Divided(features, nodes.calling(mapped, rest))


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
