"""Datasets that parse tf.train.Examples: where they are read, if that can be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfrfast.features import AnyFeatures, Features
from tfrfast.features.compiling import compile_features
from tfrfast.features.inference import settle
from tfrfast.features.samples import Sample
from tfrfast.tensorflow.columns import TensorFeatures
from tfrfast.tensorflow.functions import parallel_map
from tfrfast.tensorflow.history import Refusal
from tfrfast.tensorflow.other_methods import WithOtherMethods
from tfrfast.tensorflow.remembering import ENDED

_PARSED = "as parse_example(): records are decoded where they are read"


class ParsingDataset(WithOtherMethods):
    """A dataset with parse_example(), which also knows other ways to say it."""

    def parse_example(self, features: AnyFeatures) -> Any:
        """Parses tf.train.Examples to what `tf.io.parse_example` gives: a dict of tensors.

        `features` are specs of tfrfast or of tf.io; or, executing eagerly, a list of names or
        "infer" for all: then the specs are inferred here, once, from the first records. After
        batch(), records are decoded where they are read and never become strings. Single records
        are parsed by TensorFlow, which is slow, and takes specs of tf.io.
        """
        spec = self.element_spec
        if (
            not isinstance(spec, tf.TensorSpec)
            or spec.dtype != tf.string
            or spec.shape.rank is None
        ):
            raise TypeError(f"parse_example() needs serialized records, but elements are {spec}.")
        features = settle(features, self._first_records)
        if spec.shape.rank == 0:
            return self.map(_parse_single(features), tf.data.AUTOTUNE)
        compiled = TensorFeatures(compile_features(features))
        fused = ENDED if self._pipeline is None else self._pipeline.parsed(compiled)
        return self._fused_or(
            lambda dataset: parallel_map(dataset, compiled.parse),
            fused,
            "parse_example({...})",
            length=self._length,
        )

    def _parsed_as(self, theirs: Any, call: str, features: TensorFeatures | None) -> Any:
        """The same as `theirs`, decoded where records are read; None if that cannot be."""
        if self._pipeline is None or features is None:
            return None
        fused = self._pipeline.parsed(features)
        if isinstance(fused, Refusal):
            return None
        ours = self._fused(fused, call, _PARSED)
        return ours if ours.element_spec == theirs.element_spec else None

    def _first_records(self, count: int) -> Sample:
        """Records in file order where that is known, else as the dataset gives them."""
        if not tf.executing_eagerly():
            raise ValueError("Features are only inferred eagerly. Give a dict of specs in a graph.")
        pipeline = self._pipeline
        records = self if pipeline is None or pipeline.elementwise else pipeline.source.stream()
        if records.element_spec.shape.rank:
            records = records.unbatch()
        found = list(records.take(count).as_numpy_iterator())
        return Sample(found, range(len(found)))


def _parse_single(features: Features) -> Callable[[Any], Any]:
    if any(type(spec).__module__.startswith("tfrfast.") for spec in features.values()):
        raise TypeError(
            "Single records are parsed by TensorFlow, with specs of tf.io. Use batch() first."
        )

    def parse_single_example(record: Any) -> Any:
        return tf.io.parse_single_example(record, features)

    return parse_single_example
