"""Lifts the parse out of a function of batches: tfrfast decodes, and tf.data runs the rest."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from tfrfast.features.compiling import compile_features
from tfrfast.tensorflow import internals
from tfrfast.tensorflow.columns import TensorFeatures
from tfrfast.tensorflow.lift.by_row import PACKING
from tfrfast.tensorflow.lift.copying import cut, joined, origin, results_of
from tfrfast.tensorflow.lift.parses import PARSER, SERIALIZED, Parse, find_parse, parse_of
from tfrfast.tensorflow.reasons import reason_of


class Divided(NamedTuple):
    """A function of batches of records in two parts."""

    features: TensorFeatures
    #: The function of the decoded tensors; None if decoding alone gives the result.
    rest: Any


def divided(function: Any, spec: Any, may_cut: bool = True) -> Divided | None:
    """Returns the parts of a traced function, which makes elements like `spec`; None if the parse
    cannot be taken out. Unless it `may_cut`, the function must only parse and arrange the result.
    """
    try:
        return _divided(function, spec, may_cut)
    except Exception as error:  # TensorFlow runs the unchanged function
        reason_of(error, "its parse was not taken out")
        return None


def _divided(function: Any, spec: Any, may_cut: bool) -> Divided | None:
    graph = joined([function.graph]) if tf.executing_eagerly() else function.graph
    if len(graph.inputs) - len(internals.captures_of(graph)) != 1:
        return None
    parse = find_parse(graph)
    results = results_of(graph)
    leaves = [_Leaf.of(each, parse) for each in results]
    try:
        if not graph.control_outputs and len(tf.nest.flatten(spec)) == len(leaves):
            arranged = [each for each in leaves if each is not None]
            if len(arranged) == len(leaves):
                return Divided(ParsedTensors(parse, arranged, spec), None)
        if not may_cut or not tf.executing_eagerly():
            return None
        features = ParsedTensors.of(parse, parse.used)
    except (TypeError, ValueError):
        return None
    rest = cut(graph, parse.used, results, instead=_inner_parses(graph, parse.op))
    return Divided(features, rest)


def _inner_parses(graph: Any, parser: Any) -> dict[str, Any]:
    """Returns what to write for ops that parse vectors of Examples, which are themselves in
    features.
    """
    made = {}
    for op in graph.get_operations():
        if op.type != PARSER or op is parser or op.inputs[SERIALIZED].shape.rank != 1:
            continue
        parse = parse_of(op)
        try:
            features = None if parse is None else ParsedTensors.of(parse, op.outputs)
        except (TypeError, ValueError):
            continue
        if features is not None:
            made[op.name] = lambda _, inputs, by=features: by.parse(inputs[SERIALIZED])
    return made


class _Leaf(NamedTuple):
    """A component of a result: a feature, or (if `place` is not None) one of its tensors."""

    key: str
    place: int | None

    @classmethod
    def of(cls, result: Any, parse: Parse) -> _Leaf | None:
        """Returns None for a result that is not parsed alone."""
        tensor = origin(result)
        if tensor.op.type not in PACKING:
            found = parse.outputs.get(tensor.name)
            return None if found is None else cls(*found)
        is_sparse = tensor.op.type == "SerializeSparse"
        parts = [parse.outputs.get(origin(each).name) for each in tensor.op.inputs]
        key = parts[0][0] if parts[0] else ""
        places = (0, 1, 2) if is_sparse else (1, 0)
        if parts != [(key, place) for place in places] or tensor.op.control_inputs:
            return None
        if not is_sparse and tensor.op.get_attr("batched_input"):
            return None
        return cls(key, None)


class ParsedTensors(TensorFeatures):
    """Features and tensors of features, in some structure."""

    def __init__(self, parse: Parse, leaves: Sequence[_Leaf], structure: Any) -> None:
        super().__init__(compile_features(parse.features))
        self._leaves, self._structure = leaves, structure
        self._identity = self.text, repr(self._specs), (_key_of(structure), *leaves)

    @classmethod
    def of(cls, parse: Parse, outputs: Sequence[Any]) -> ParsedTensors:
        """Makes outputs of the parsing op."""
        leaves = [_Leaf(*parse.outputs[each.name]) for each in outputs]
        return cls(parse, leaves, tuple(outputs))

    def assemble(self, columns: Sequence[Any]) -> Any:
        parsed = super().assemble(columns)
        made = [
            parsed[key]
            if place is None
            else tf.nest.flatten(parsed[key], expand_composites=True)[place]
            for key, place in self._leaves
        ]
        return tf.nest.pack_sequence_as(self._structure, made)


def _key_of(structure: Any) -> Hashable:
    """Returns a key that is equal only for equal structures."""
    kind = type(structure)
    if kind is dict and all(type(name) is str for name in structure):
        return dict, *((name, _key_of(each)) for name, each in structure.items())
    if kind in (tuple, list):
        return kind, *map(_key_of, structure)
    return object() if tf.nest.is_nested(structure) else None
