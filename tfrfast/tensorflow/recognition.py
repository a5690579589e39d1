"""Recognises functions that only parse tf.train.Examples, by the graphs that TensorFlow traced."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any, NamedTuple

import tensorflow as tf

from tfrfast.features.compiling import compile_features
from tfrfast.tensorflow import internals
from tfrfast.tensorflow.columns import TensorFeatures

# Decoding ops that give tensors of different shapes, or take longer than parsing.
_MEDIA = {
    "DecodeAndCropJpeg",
    "DecodeBmp",
    "DecodeGif",
    "DecodeImage",
    "DecodeJpeg",
    "DecodePng",
    "DecodeWav",
    "DecodeWebP",
}
OF_SEQUENCES = "ParseSequenceExampleV2"
PARSERS = {"ParseExample", "ParseExampleV2", "ParseSingleExample", OF_SEQUENCES}
# The inputs of ParseExampleV2 before the defaults.
SERIALIZED, _NAMES, _SPARSE, _DENSE, _RAGGED, _DEFAULTS = range(6)


def parses_examples(mapped: Any) -> bool:
    """True if the function of a map() parses Examples, among other work."""
    return any(operation.type in PARSERS for operation in _operations(mapped))


def decodes_media(mapped: Any) -> bool:
    """True if the function of a map() must see single records, because of images or sounds."""
    return any(operation.type in _MEDIA for operation in _operations(mapped))


def _operations(mapped: Any) -> Iterator[Any]:
    for function in internals.functions_of(mapped):
        yield from function.function.graph.get_operations()


class ArrangedFeatures(TensorFeatures):
    """Features in the structure of a function's result.

    A `key` is equal only for functions that arrange features alike.
    """

    def __init__(
        self,
        features: dict[str, Any],
        arrange: Callable[[dict[str, Any]], Any],
        key: Hashable = None,
    ) -> None:
        super().__init__(compile_features(features))
        self._arrange = arrange
        if key is not None:
            self._identity = self.text, repr(self._specs), key

    def assemble(self, columns: Any) -> Any:
        return self._arrange(super().assemble(columns))


def features_of_map(mapped: Any) -> TensorFeatures | None:
    """Returns the features, if a map() only parses batches of Examples and arranges the result.

    Examples are `map(lambda batch: tf.io.parse_example(batch, features))`, functools.partial, and a
    function that returns some of the features in another structure.
    """
    functions = internals.functions_of(mapped)
    if len(functions) != 1:
        return None
    graph = functions[0].function.graph
    parsers = [each for each in graph.get_operations() if each.type == "ParseExampleV2"]
    others = (each for each in graph.get_operations() if each.type != "ParseExampleV2")
    if len(parsers) != 1 or len(graph.inputs) != 1 or graph.control_outputs:
        return None
    if any(each.op_def.is_stateful for each in others) or functions[0].function.captured_inputs:
        return None
    parser = parsers[0]
    if parser.control_inputs or origin(parser.inputs[SERIALIZED]) is not graph.inputs[0]:
        return None
    structure = functions[0].output_structure
    leaves = tf.nest.flatten(structure)
    columns = columns_of(parser)
    if columns is None or len(leaves) != len(graph.outputs):
        return None
    found = [columns.key_of.get(_parts(tensor)) for tensor in graph.outputs]
    keys = [key for key in found if key is not None]
    if len(keys) < len(found):
        return None
    return arranged(
        columns.features,
        lambda parsed: tf.nest.pack_sequence_as(structure, [parsed[key] for key in keys]),
        (_key_of(structure), *keys),
    )


def _key_of(structure: Any) -> Hashable:
    """Returns a key that is equal only for equal structures."""
    kind = type(structure)
    if kind is dict and all(type(name) is str for name in structure):
        return dict, *((name, _key_of(each)) for name, each in structure.items())
    if kind in (tuple, list):
        return kind, *map(_key_of, structure)
    return object() if tf.nest.is_nested(structure) else None


def features_of_parsing(parsed: Any) -> TensorFeatures | None:
    """Returns the features of a dataset that parse_example_dataset() has made."""
    features = internals.attribute(parsed, "features")
    plain = (tf.io.FixedLenFeature, tf.io.VarLenFeature)
    if not isinstance(features, dict):
        return None
    if not all(isinstance(feature, plain) for feature in features.values()):
        return None
    return arranged(features, lambda parsed: parsed)


def arranged(
    features: dict[str, Any], arrange: Callable[[dict[str, Any]], Any], key: Hashable = None
) -> TensorFeatures | None:
    """Returns features in another structure; None if only TensorFlow can parse them."""
    try:
        return ArrangedFeatures(features, arrange, key)
    except (TypeError, ValueError):
        return None


class ParsedColumns(NamedTuple):
    """The result of a ParseExampleV2: its features, and the tensors of each by name."""

    features: dict[str, Any]
    key_of: dict[tuple[str, ...], str]


def columns_of(parser: Any) -> ParsedColumns | None:
    """Returns None if an input is not constant, or a key occurs twice."""
    keys = [constant_strings(parser.inputs[each]) for each in (_NAMES, _SPARSE, _DENSE, _RAGGED)]
    if any(each is None for each in keys) or keys[0]:
        return None
    sparse, dense, ragged = (each or [] for each in keys[1:])
    if len({*sparse, *dense, *ragged}) < len([*sparse, *dense, *ragged]):
        return None
    columns = ParsedColumns({}, {})
    names = [output.name for output in parser.outputs]
    many = len(sparse)
    for i, (key, dtype) in enumerate(zip(sparse, parser.get_attr("sparse_types"), strict=True)):
        columns.features[key] = tf.io.VarLenFeature(dtype)
        columns.key_of["SerializeSparse", names[i], names[many + i], names[2 * many + i]] = key
    first = 3 * many
    shapes, types = parser.get_attr("dense_shapes"), parser.get_attr("Tdense")
    defaults = parser.inputs[_DEFAULTS:]
    for i, (key, *feature_of) in enumerate(zip(dense, shapes, types, defaults, strict=True)):
        feature = dense_feature(*feature_of)
        if feature is None:
            return None
        columns.features[key] = feature
        columns.key_of["", names[first + i]] = key
    first += len(dense)
    types = zip(
        parser.get_attr("ragged_value_types"), parser.get_attr("ragged_split_types"), strict=True
    )
    for i, (key, (values, splits)) in enumerate(zip(ragged, types, strict=True)):
        columns.features[key] = tf.io.RaggedFeature(values, row_splits_dtype=splits)
        split = names[first + len(ragged) + i]
        columns.key_of["RaggedTensorToVariant", split, names[first + i]] = key
    return columns


def dense_feature(given_shape: Any, dtype: Any, tensor: Any) -> Any:
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


def _parts(output: Any) -> tuple[str, ...]:
    """Returns the tensors in a component of a function's result."""
    tensor = origin(output)
    kind = tensor.op.type
    if kind not in ("SerializeSparse", "RaggedTensorToVariant"):
        return "", tensor.name
    if tensor.op.control_inputs or (
        kind == "RaggedTensorToVariant" and tensor.op.get_attr("batched_input")
    ):
        return ()
    return kind, *(origin(each).name for each in tensor.op.inputs)


def origin(tensor: Any) -> Any:
    """Returns the tensor before identities."""
    while tensor.op.type == "Identity" and not tensor.op.control_inputs:
        tensor = tensor.op.inputs[0]
    return tensor


def constant_strings(tensor: Any) -> list[str] | None:
    known = tf.get_static_value(tensor)
    try:
        return None if known is None else [each.decode() for each in known.reshape(-1).tolist()]
    except UnicodeDecodeError:
        return None
