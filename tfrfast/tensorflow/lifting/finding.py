"""Finds the parse in a map function: the only op that takes the record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import tensorflow as tf

from tfrfast.features.compiling import compile_features
from tfrfast.tensorflow.columns import TensorFeatures
from tfrfast.tensorflow.history import Refusal
from tfrfast.tensorflow.lifting.sequences import compiled_sequences, parsed_sequence
from tfrfast.tensorflow.lifting.variable import Kind, ParsedPart, ParsedRecord
from tfrfast.tensorflow.recognition import (
    OF_SEQUENCES,
    PARSERS,
    SERIALIZED,
    columns_of,
    origin,
)

_NO_PARSE = Refusal("it does not parse Examples")
NOT_CONSTANT = Refusal(
    "the keys, the shapes or the defaults of the parse are not constants, or it parses a "
    "feature in two ways",
)
_LIFTED = ("ParseExampleV2", OF_SEQUENCES)


@dataclass(frozen=True)
class Parse:
    """A parse of one record, and the outputs that the function uses."""

    #: The features that the core decodes: all features of the op, because any feature may be an
    #: error.
    features: TensorFeatures
    #: The used outputs of the op, and the meaning of each.
    used: tuple[Any, ...]
    parts: tuple[ParsedPart, ...]


class FoundParser(NamedTuple):
    """The op that parses a function's argument, which no other op uses."""

    parser: Any
    #: The used outputs of the op.
    used: tuple[Any, ...]


def find_parser(graph: Any) -> FoundParser | Refusal:
    """Returns the parsing op in a graph whose first input is a record, or a batch of records."""
    needed = needed_operations(graph)
    parsers = [each for each in needed if each.type in PARSERS]
    if not parsers:
        return _NO_PARSE
    record = graph.inputs[0]
    of_record = [
        each
        for each in parsers
        if each.type in _LIFTED and origin(each.inputs[SERIALIZED]) is record
    ]
    if len(of_record) > 1:
        return Refusal("it parses twice", "one call, with all features")
    if not of_record:
        return Refusal("it changes the record before it parses it")
    (parser,) = of_record
    if not _goes_only_to(record, parser, needed):
        return Refusal("it uses the record for more than the parse")
    if parser.control_inputs or any(parser in each.control_inputs for each in needed):
        return Refusal("it does something before or after the parse by control dependencies")
    used = tuple(
        output
        for output in parser.outputs
        if any(consumer in needed for consumer in output.consumers()) or _is_among(output, graph)
    )
    return FoundParser(parser, used)


def find_parse(graph: Any) -> Parse | Refusal:
    """Returns the parse in a graph whose first input is a record."""
    found = find_parser(graph)
    if isinstance(found, Refusal):
        return found
    parser, used = found
    parsed = parsed_sequence(parser) if parser.type == OF_SEQUENCES else _parsed_example(parser)
    if parsed is None:
        return NOT_CONSTANT
    parts = [parsed.parts.get(tensor.name) for tensor in used]
    if None in parts:
        return Refusal(
            "it uses the row splits of one record, or the steps of a sparse feature list",
            "values alone, or a FixedLenSequenceFeature",
        )
    whole = tuple(part for part in parts if part is not None)
    described = dict(parsed.features)
    for part in whole:
        if part.kind != "row":
            described[part.key] = tf.io.RaggedFeature(
                described[part.key].dtype, row_splits_dtype=tf.int64
            )
    try:
        if parsed.lists is None:
            compiled = compile_features(described)
        else:
            compiled = compiled_sequences(described, parsed.lists)
        features = TensorFeatures(compiled)
    except (TypeError, ValueError):
        return Refusal("it parses features that only TensorFlow can parse")
    return Parse(features, used, whole)


def _parsed_example(parser: Any) -> ParsedRecord | None:
    columns = columns_of(parser)
    if columns is None:
        return None
    parts: dict[str, ParsedPart] = {}
    for (kind, *names), key in columns.key_of.items():
        feature = columns.features[key]
        if kind == "SerializeSparse":
            kinds: tuple[Kind, ...] = ("indices", "values", "shape")
            parts.update(
                (name, ParsedPart(key, each)) for name, each in zip(names, kinds, strict=True)
            )
        elif kind == "RaggedTensorToVariant":
            parts[names[1]] = ParsedPart(key, "values")
        elif isinstance(feature, tf.io.FixedLenSequenceFeature):
            if 0 not in feature.shape:
                parts[names[0]] = ParsedPart(key, "values", tuple(feature.shape))
        else:
            parts[names[0]] = ParsedPart(key)
    return ParsedRecord(columns.features, parts)


def needed_operations(graph: Any, results: Sequence[Any] | None = None) -> set[Any]:
    """Returns the operations that run: all predecessors of outputs and control outputs."""
    pending = [tensor.op for tensor in graph.outputs if results is None]
    pending += [tensor.op for tensor in results or ()] + list(graph.control_outputs)
    found: set[Any] = set()
    while pending:
        operation = pending.pop()
        if operation not in found:
            found.add(operation)
            pending += [tensor.op for tensor in operation.inputs]
            pending += operation.control_inputs
    return found


def _goes_only_to(record: Any, parser: Any, needed: set[Any]) -> bool:
    """True if only the parser takes the record, directly or through identities."""
    if any(origin(tensor) is record for tensor in record.graph.outputs):
        return False
    pending = [record]
    while pending:
        tensor = pending.pop()
        for consumer in tensor.consumers():
            if consumer is parser:
                if sum(each is tensor for each in parser.inputs) > 1:
                    return False
            elif consumer in needed:
                if consumer.type != "Identity":
                    return False
                pending += consumer.outputs
    return True


def _is_among(tensor: Any, graph: Any) -> bool:
    return any(tensor is output for output in graph.outputs)
