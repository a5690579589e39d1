"""What functions of users do with records, by the graphs that TensorFlow traced."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from tfrfast.features.compiling import compile_features
from tfrfast.tensorflow import internals
from tfrfast.tensorflow.columns import TensorFeatures
from tfrfast.tensorflow.lift.parses import PARSERS

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


def parses_examples(mapped: Any) -> bool:
    """True if the function of a map() parses Examples, among other work."""
    return any(operation.type in PARSERS for operation in _operations(mapped))


def decodes_media(mapped: Any) -> bool:
    """True if the function of a map() must see single records, because of images or sounds."""
    return any(operation.type in _MEDIA for operation in _operations(mapped))


def _operations(mapped: Any) -> Iterator[Any]:
    for function in internals.functions_of(mapped):
        yield from function.function.graph.get_operations()


def features_of_parsing(parsed: Any) -> TensorFeatures | None:
    """Returns the features of a dataset that parse_example_dataset() has made; None if only
    TensorFlow can parse them.
    """
    features = internals.attribute(parsed, "features")
    plain = (tf.io.FixedLenFeature, tf.io.VarLenFeature)
    if not isinstance(features, dict):
        return None
    if not all(isinstance(feature, plain) for feature in features.values()):
        return None
    try:
        return TensorFeatures(compile_features(features))
    except (TypeError, ValueError):
        return None
