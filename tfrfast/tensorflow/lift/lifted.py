"""Lifts the parse out of functions, which becomes decoded features.

The rest of functions of records becomes a function of columns. The rest of a function of batches
is run by tf.data.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import tensorflow as tf

from tfrfast.features.compiling import compile_features
from tfrfast.tensorflow import internals
from tfrfast.tensorflow.columns import TensorFeatures
from tfrfast.tensorflow.lift.copying import cut, imported, joined, origin, results_of
from tfrfast.tensorflow.lift.op_rules import differing
from tfrfast.tensorflow.lift.parses import (
    PARSER,
    SERIALIZED,
    Look,
    Parse,
    Serialized,
    find_parse,
    parse_of,
    serialized_in,
)
from tfrfast.tensorflow.lift.variable import Indices, Lengths, Padding, VariableRows
from tfrfast.tensorflow.lift.vectorising import PACKING, Whole, vectorised
from tfrfast.tensorflow.read.nodes import has_one_shape
from tfrfast.tensorflow.reasons import RefusedError, Step, reason_of

# If only the record tells the size of a result, the size is estimated as this multiple of the
# record: integers are packed in records, and images are compressed.
_GROWTH = 4
_VARIABLE = "TFRFAST_LIFT_PARSING"
_WORDS = {"": "", "1": "", "0": f"{_VARIABLE} is 0"}
_SHOWN_OPS = 3
_PICTURES = frozenset(["DecodeAndCropJpeg", "DecodeImage", "DecodeJpeg", "DecodePng"])
_AS_IMAGES = "tfr.Loader with tfr.Image, which decodes, cuts and resizes pictures as it reads"


def why_unlifted() -> str:
    """Returns why the environment lets no parse be lifted; "" if it does."""
    word = os.environ.get(_VARIABLE, "")
    if word not in _WORDS:
        raise ValueError(f'{_VARIABLE} is {word!r}, but must be "0" or "1".')
    return _WORDS[word]


class Mapped(NamedTuple):
    """A map() or filter() of single elements."""

    #: The traced function.
    function: Any
    #: The spec of the elements after the call.
    spec: Any
    is_filter: bool = False


@dataclass(frozen=True)
class Lifted:
    """Functions of single records, the first of which parses, as a function of whole columns."""

    #: The features that are decoded: all features of the parse, because any may be an error.
    features: TensorFeatures
    #: The features that the function takes, by key.
    keys: tuple[str, ...]
    #: The function of the features' tensors. Its results are the rows that all filters accept.
    whole: Whole
    calls: tuple[Mapped, ...]
    #: The types of the ops whose values may differ from a map() of tf.data.
    differing: tuple[str, ...]
    #: The padding of shorter rows; None: all rows must have one shape.
    padding: Padding | None = None

    def run(self, parsed: dict[str, Any], rows: int | None) -> tuple[list[Any], Any]:
        """Returns the components of a batch of elements, and a boolean that is false for an invalid
        batch (None: always valid).

        In an invalid batch a row may fail, and the batch must be made row by row. A component is
        one tensor, in tf.data's form also for sparse and ragged tensors.
        """
        given = tf.nest.flatten([parsed[key] for key in self.keys], expand_composites=True)
        columns = imported(self.whole.graph, given)
        holds = columns.pop() if self.whole.checked else None
        for column, spec in zip(columns, tf.nest.flatten(self.batch_spec(rows)), strict=True):
            if isinstance(spec, tf.TensorSpec):
                column.set_shape(spec.shape)
        return columns, holds

    @property
    def raises(self) -> bool:
        """True if run() itself can fail, because ops run row by row."""
        return self.whole.by_row is not None

    @property
    def by_element(self) -> tuple[str, ...]:
        """The types of the ops that run row by row."""
        return self.whole.kinds

    def step(self, call: str, wholes: str) -> Step:
        """Returns the treatment of a call of map(), which runs on whole batches or blocks."""
        why = f"records are decoded where they are read, and the rest runs on whole {wholes}"
        if self.by_element:
            why += f", but row by row from {_some(self.by_element)} on"
        if self.differing:
            why += f"; floats of {_some(self.differing)} may differ from tf.data's"
        instead = "" if _PICTURES.isdisjoint(self.by_element) else _AS_IMAGES
        return Step(call, fused=True, why=why, instead=instead)

    @property
    def functions(self) -> list[Any]:
        return [each.function for each in self.calls]

    def row_bytes(self, record_bytes: int) -> int:
        """Returns the approximate bytes of a row's results, for records of so many bytes on
        average.
        """
        graph, unsized_bytes = self.whole.graph, _GROWTH * record_bytes
        # A feature whose rows have different lengths is two arguments.
        varying = len(graph.inputs) - len(internals.captures_of(graph)) - len(self.keys)
        return self.whole.row_bytes(unsized_bytes) + varying * unsized_bytes

    def batch_spec(self, rows: int | None) -> Any:
        spec = self.calls[-1].spec
        if self.padding is not None:
            return self.padding.batch_spec(spec, rows)
        return tf.nest.map_structure(lambda each: internals.batched(each, rows), spec)


def _some(ops: Sequence[str]) -> str:
    more = len(ops) - _SHOWN_OPS
    return ", ".join(ops[:_SHOWN_OPS]) + (f" and {more} more" if more > 0 else "")


def lift(calls: Sequence[Mapped], padding: Padding | None = None, look: Look = tuple) -> Lifted:
    """Lifts the parse out of maps and filters of single records, or raises RefusedError.

    No failure here is the user's error: TensorFlow then runs the unchanged maps.
    """
    try:
        return _lift(tuple(calls), padding, look)
    except Exception as error:
        raise RefusedError(reason_of(error, "its parse was not lifted")) from None


def _lift(calls: tuple[Mapped, ...], padding: Padding | None, look: Look) -> Lifted:
    if not tf.executing_eagerly():
        raise RefusedError("tfrfast does not lift a parse in a graph")
    filters = frozenset(number for number, each in enumerate(calls) if each.is_filter)
    graph = joined([each.function.graph for each in calls], filters)
    if graph is None:
        raise RefusedError("its maps cannot be made one function", "one map() that does all")
    parse = find_parse(graph)
    if not all(_is_known(each) for call in calls for each in tf.nest.flatten(call.spec)):
        raise RefusedError("tfrfast does not lift results other than tensors of a known rank")
    if filters and not all(map(_has_rows, tf.nest.flatten(calls[-1].spec))):
        raise RefusedError("tfrfast does not filter sparse tensors")
    if filters and any(differing(graph, graph.outputs[-1:])):
        raise RefusedError("floats of a filter() may differ in their last bits")
    columns = _Parsed(parse, serialized_in(graph, parse, look))
    if columns.why_not:
        raise RefusedError(columns.why_not, "values alone, or a FixedLenSequenceFeature")
    try:
        features = TensorFeatures(compile_features(columns.features))
    except (TypeError, ValueError):
        raise RefusedError("it parses features that only TensorFlow can parse") from None
    whole = vectorised(graph, columns.specs, columns, padding, bool(filters))
    differs = tuple(sorted(set(differing(graph))))
    return Lifted(features, columns.keys, whole, calls, differs, padding)


class _Parsed:
    """The parsed features of many records, as columns of the parsed tensors of one record."""

    def __init__(self, parse: Parse, tensors: dict[str, Serialized]) -> None:
        self._parse, self._tensors = parse, tensors
        self._used = {each.name: parse.outputs[each.name] for each in parse.used}
        self.keys = tuple(dict.fromkeys(key for key, _ in self._used.values()))
        self.features, self.specs = dict(parse.features), list[Any]()
        for key in self.keys:
            feature = parse.features[key]
            if key in tensors:
                self.features[key] = spec = tensors[key].spec
                self.specs.append(tf.TensorSpec([None, *tensors[key].shape], spec.dtype))
            elif isinstance(feature, tf.io.FixedLenFeature):
                self.specs.append(tf.TensorSpec([None, *feature.shape], feature.dtype))
            else:
                self.features[key] = tf.io.RaggedFeature(feature.dtype, row_splits_dtype=tf.int64)
                self.specs.append(tf.TensorSpec([None], feature.dtype))
                self.specs.append(tf.TensorSpec([None], tf.int64))

    @property
    def why_not(self) -> str:
        """Returns why the tensors have no columns; "" if they have."""
        for key, place in self._used.values():
            feature = self._parse.features[key]
            if isinstance(feature, tf.io.RaggedFeature) and place:
                return "tfrfast does not lift the row splits of one record"
            if isinstance(feature, tf.io.FixedLenSequenceFeature) and feature.shape:
                return "tfrfast does not lift steps of several values"
        return ""

    def __call__(self, *arguments: Any) -> dict[str, Any]:
        left, columns, made = iter(arguments), dict[str, Any](), dict[str, Any]()
        for key in self.keys:
            columns[key] = next(left)
            if not isinstance(self._parse.features[key], tf.io.FixedLenFeature):
                columns[key] = VariableRows(columns[key], next(left))
        for name, (key, place) in self._used.items():
            rows, serialized = columns[key], self._tensors.get(key)
            made |= dict.fromkeys([name] if serialized is None else serialized.parsed, rows)
            if isinstance(self._parse.features[key], tf.io.VarLenFeature):
                made[name] = (Indices(rows), rows, Lengths(rows))[place]
        return made


def _has_rows(spec: Any) -> bool:
    """True if a batch of such components is one tensor with a row for each element."""
    return isinstance(spec, tf.RaggedTensorSpec) or has_one_shape(spec)


def _is_known(spec: Any) -> bool:
    if isinstance(spec, tf.TensorSpec):  # its rows may run one by one
        return True
    composite = isinstance(spec, (tf.SparseTensorSpec, tf.RaggedTensorSpec))
    return composite and spec.shape.rank is not None


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
