"""Turns the outputs of reading ops into elements: good records, and each error at its place."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow import internals
from tfrfast.tensorflow.blocks import failure, raising, some
from tfrfast.tensorflow.columns import TensorFeatures
from tfrfast.tensorflow.functions import chosen, flat_map, show_a_reader


class Emission(ABC):
    """Turns the outputs of a reading op into a batch, or an error at its place.

    If some records are damaged, the error comes first, then the good records. So a damaged batch
    fails, like TensorFlow's, and ignore_errors() still gives its good records.
    """

    def __init__(self, shapes: list[list[int | None]]) -> None:
        #: The shapes of the outputs.
        self.shapes = shapes

    @abstractmethod
    def element(self, *outputs: Any) -> Any:
        """Returns the batch, from outputs with their shapes."""

    @abstractmethod
    def error(self, *outputs: Any) -> Any:
        """Returns all errors; "" without errors."""

    @abstractmethod
    def good(self, *outputs: Any) -> Any:
        """Returns the number of good records before the first error."""

    @abstractmethod
    def rest(self, *outputs: Any) -> Any:
        """Returns a dataset of an unsound batch: first its error, then its good records."""

    def are_sound(self, batches: Sequence[Sequence[Any]]) -> Any:
        """True for each batch of outputs without an error."""
        errors = tf.stack([self.error(*outputs) for outputs in batches])
        good = tf.stack([self.good(*outputs) for outputs in batches])
        return tf.logical_and(tf.equal(errors, ""), good > 0)


class Strings(Emission):
    """Outputs: the records before the first error, all errors, and the other records."""

    def __init__(self, rows: int | None) -> None:
        super().__init__([[rows], [], [None]])

    def element(self, *outputs: Any) -> Any:
        return outputs[0]

    def error(self, *outputs: Any) -> Any:
        return outputs[1]

    def good(self, *outputs: Any) -> Any:
        return tf.size(outputs[0])

    @staticmethod
    def rest(head: Any, error: Any, tail: Any) -> Any:
        return failure(error, tail).concatenate(some(tf.concat([head, tail], axis=0)))


class Columns(Emission):
    """Outputs: the columns of the good records, their number, and all errors."""

    def __init__(self, features: TensorFeatures, rows: int | None) -> None:
        super().__init__([*features.shapes(rows), [], []])
        self._features = features

    def element(self, *outputs: Any) -> Any:
        return self._features.assemble(outputs[:-2])

    def error(self, *outputs: Any) -> Any:
        return outputs[-1]

    def good(self, *outputs: Any) -> Any:
        return outputs[-2]

    def rest(self, *outputs: Any) -> Any:
        batch = tf.data.Dataset.from_tensors(self.element(*outputs))
        is_error = tf.cast(tf.strings.length(self.error(*outputs)) > 0, tf.int64)
        error = raising(batch.take(is_error), self.error(*outputs))
        return error.concatenate(batch.take(tf.minimum(self.good(*outputs), 1)))


def emit_group(emission: Emission, types: Sequence[Any]) -> Callable[[Any, Any], Any]:
    """Returns a dataset of a group of `count` batches, from the outputs of at least so many.

    The outputs, of these types, come as one tensor: a trace takes 0.1 ms for each argument.
    """
    width = len(emission.shapes)

    def emit(count: Any, packed: Any) -> Any:
        unknown = [tf.TensorShape(None)] * len(types)
        outputs = tuple(
            tf.raw_ops.OptionalGetValue(optional=packed, output_types=types, output_shapes=unknown)
        )
        for output, shape in zip(outputs, itertools.cycle(emission.shapes)):
            output.set_shape(shape)  # are_sound() checks the shape
        batches = [outputs[begin : begin + width] for begin in range(0, len(outputs), width)]
        sound = emission.are_sound(batches)
        unneeded = tf.range(len(batches), dtype=tf.int64) >= count
        elements = _listed([emission.element(*batch) for batch in batches]).take(count)
        parts = _listed(batches).take(count)
        return chosen(
            tf.reduce_all(tf.logical_or(sound, unneeded)),
            lambda: elements,
            lambda: flat_map(parts, emission.rest),
        )

    return emit


def _listed(elements: list[Any]) -> Any:
    """Returns a dataset of these elements, which may have different shapes."""
    if len(elements) == 1:
        return tf.data.Dataset.from_tensors(elements[0])
    spec = internals.spec_of(elements[0])
    variant = tf.raw_ops.ListDataset(
        tensors=[each for element in elements for each in internals.flat_tensors(spec, element)],
        output_types=internals.flat_types(spec),
        output_shapes=internals.flat_shapes(spec),
    )
    return tf.data.experimental.from_variant(variant, spec)


def with_length(dataset: Any, length: int | None) -> Any:
    """Declares the number of elements (None: endless), but accepts fewer.

    `assert_cardinality` would fail at each end if damaged records were ignored. The dataset that is
    appended here claims to be endless, and is empty.
    """
    # TensorFlow declares the rest of an endless dataset endless.
    never = flat_map(tf.data.Dataset.range(1), _never_asked, spec=dataset.element_spec)
    nothing = never.repeat().skip(-1)
    declared = dataset.concatenate(nothing)
    return declared if length is None else declared.take(length)


def _never_asked(number: Any) -> Any:
    show_a_reader()  # otherwise sharding by file would fail here
    return tf.data.Dataset.from_tensors(number)
