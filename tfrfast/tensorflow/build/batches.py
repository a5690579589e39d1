"""Batches before reading, and the datasets of their contents: strings, columns, or single records.

One call reads several small batches, because a call of a dataset's function, and unbatching a
dataset, cost as much as reading some hundred records. Batches that must all be full are read one by
one: they need no unbatching, so single calls cost less.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from tfrfast.tensorflow import internals
from tfrfast.tensorflow.build.functions import (
    chosen,
    flat_map,
    made_by_a_call,
    made_once,
    parallel_flat_map,
    parallel_map,
    parallel_reads,
    take_while,
)
from tfrfast.tensorflow.columns import TensorFeatures
from tfrfast.tensorflow.library import ops

# The approximate bytes of a call, and its most batches.
_GROUP_BYTES = 4 << 20
_MAX_GROUP = 8
_MOST_CALLS_OF_FEW = 16
_BYTES_AT_ONCE = 256 << 20


def group_of(batch_bytes: int, count: int | None = None) -> int:
    """Returns the number of batches of that size in a call: a power of two, so that pieces are
    whole.

    With few batches (`count`), the number is smaller, so that several calls share the batches.
    """
    most = min(_MAX_GROUP, _GROUP_BYTES // max(1, batch_bytes))
    if count is not None:
        most = min(most, count // _MOST_CALLS_OF_FEW)
    return 1 << max(0, most.bit_length() - 1)


def batches_at_once(batch_bytes: int) -> int:
    """Returns the number of batches in work at once: large batches take memory, but two keep all
    threads busy.

    Each batch is made in one piece. Joining pieces of 16 MiB takes up to twice the time and, unless
    a function makes many large values one after the other, more memory.
    """
    return max(2, min(parallel_reads(), _BYTES_AT_ONCE // max(1, batch_bytes)))


class Read(NamedTuple):
    """What was read of a group of batches."""

    columns: Sequence[Any]  # of all batches
    is_sound: Any  # True if all batches have rows, and no error
    # The number of batches, the good rows of each, and the rows of each before its first error.
    facts: Any
    error: Any  # the errors of each batch; "" for none


def described(features: TensorFeatures | None) -> tuple[bytes, list[Any]]:
    """Returns the features for an op, and the types of its columns: strings without features."""
    return (b"", [tf.string]) if features is None else (features.text, features.column_types)


class Batches:
    """Batches that tensors identify: those of a step of TfrfastWalk, or a vector that an order
    understands.
    """

    def __init__(
        self,
        size: int,
        is_full: bool,
        group: int,
        record_bytes: int,
        known_by: Any,
        *tensors: Any,
        finished: Callable[[Any], Any] = lambda dataset: dataset,
    ) -> None:
        """`tensors` are the source and its order, which is "" for file order. `record_bytes` is the
        approximate size of records, 0 if unknown.
        """
        assert group == 1 or not is_full
        self.size, self._group, self.record_bytes = size, group, record_bytes
        #: The rows of each batch, if all must be full.
        self.rows = size if is_full else None
        #: Returns the finished dataset, with its length, and repeated if requested.
        self.finished = finished
        self._known_by = known_by
        self._tensors = tensors

    def read(self, features: TensorFeatures | None, *batch: Any) -> Read:
        """Reads a group of batches. A batch that must be full fails if a record is bad."""
        place, errors = batch if len(batch) == 2 else (*batch, "")
        text, types = described(features)
        types = types * self._group
        return Read(*ops.tfrfast_read(*self._tensors, place, errors, text, column_types=types))

    def mapped(
        self,
        function: Callable[..., Any],
        *,
        calls: int | None = None,
        on_one_thread: bool = True,
    ) -> Any:
        """Maps a function over the tensors of batches, like parallel_map()."""
        calls = calls or batches_at_once(self.size * self._group * self.record_bytes)
        return parallel_map(self._known_by, function, calls=calls, on_one_thread=on_one_thread)

    def mapped_each(self, function: Callable[..., Any], *, calls: int) -> Any:
        """Returns the elements of the one-element datasets that a function makes of each batch."""
        return parallel_flat_map(self._known_by, function, calls=calls)

    def contents(self, features: TensorFeatures | None) -> Any:
        """Returns the batches as columns of the features or, without features, as strings."""
        made_as = self.size, self.rows is not None, self._group, self.record_bytes
        values = type(self), made_as, features
        return self.finished(made_once(_contents, values, self._known_by, *self._tensors))

    def block(self, *batch: Any) -> tuple[Any, Any, Any]:
        """Reads a batch for in_parts()."""
        found = self.read(None, *batch)
        parts = found.columns[0], found.facts[2], found.error[0]
        parts[0].set_shape([None])
        return parts

    def blocks(self) -> Any:
        """Returns the records of each batch as one element, or in parts around errors."""
        return flat_map(self.mapped(self.block), _emit_block)


class StringBatches(Batches):
    """Batches of strings that have been read, and have no bad records."""

    def read(self, features: TensorFeatures | None, *batch: Any) -> Read:
        columns = batch
        if features is not None:
            columns = ops.tfrfast_parse_example(
                *batch, features.text, column_types=features.column_types
            )
        rows = tf.size(batch[0], tf.int64)
        return Read(columns, rows > 0, tf.stack([1, rows, rows]), tf.constant([""]))


def _contents(
    kind: Callable[..., Batches],
    made_as: tuple[int, bool, int, int],
    features: TensorFeatures | None,
    *given: Any,
) -> Any:
    batches, (_, is_full, group, _) = kind(*made_as, *given), made_as
    shapes = [[batches.rows]] if features is None else features.shapes(batches.rows)
    width = len(shapes)

    def element(columns: Sequence[Any]) -> Any:
        return columns[0] if features is None else features.assemble(columns)

    def full(*batch: Any) -> Any:
        return element(list(map(tf.ensure_shape, batches.read(features, *batch).columns, shapes)))

    types: list[Any] = []

    # The outputs go on as one tensor: a trace takes 0.1 ms for each argument.
    def read_group(*members: Any) -> tuple[Any, Any]:
        found = batches.read(features, *members)
        outputs = [*found.columns, found.facts, found.error]
        types[:] = [output.dtype for output in outputs]
        return found.is_sound, tf.raw_ops.OptionalFromValue(components=outputs)

    def emit(is_sound: Any, packed: Any) -> Any:
        unknown = [tf.TensorShape(None)] * len(types)
        *columns, facts, error = tf.raw_ops.OptionalGetValue(
            optional=packed, output_types=types, output_shapes=unknown
        )
        for column, shape in zip(columns, shapes * group, strict=True):
            column.set_shape(shape)
        facts.set_shape([1 + 2 * group])
        error.set_shape([group])
        members = [columns[begin : begin + width] for begin in range(0, len(columns), width)]
        elements = _listed(list(map(element, members)))

        def unsound() -> Any:
            good = tf.unstack(facts)[1 : group + 1]
            parts = zip(members, good, tf.unstack(error), strict=True)
            return flat_map(_listed([(*each, rows, why) for each, rows, why in parts]), rest)

        # `elements` of the last group may be fewer.
        return chosen(
            is_sound, lambda: elements if group == 1 else elements.take(facts[0]), unsound
        )

    # The error comes first, then the good records. So a damaged batch fails, like TensorFlow's, and
    # ignore_errors() still gives its good records.
    def rest(*batch: Any) -> Any:
        *columns, good, error = batch
        made = tf.data.Dataset.from_tensors(element(columns))
        return _failure(made, error).concatenate(made.take(tf.minimum(good, 1)))

    if is_full:
        return batches.mapped(full)
    return flat_map(batches.mapped(read_group), emit)


def _emit_block(records: Any, before: Any, error: Any) -> Any:
    is_sound = tf.logical_and(tf.equal(error, ""), before > 0)
    return chosen(
        is_sound,
        lambda: tf.data.Dataset.from_tensors(records),
        lambda: in_parts(records, before, error),
    )


def in_parts(records: Any, before: Any, error: Any) -> Any:
    """Returns a dataset of the records before the first error, the error, and other records."""
    return made_by_a_call(_in_parts, records, before, error)


def _in_parts(records: Any, before: Any, error: Any) -> Any:
    failure = _failure(tf.data.Dataset.from_tensors(records), error)
    return _some(records[:before]).concatenate(failure).concatenate(_some(records[before:]))


def _some(records: Any) -> Any:
    """Returns a dataset of one element, or of none without records."""
    return tf.data.Dataset.from_tensors(records).take(tf.sign(tf.size(records, tf.int64)))


def _failure(one: Any, error: Any) -> Any:
    """Returns a dataset without elements, which raises `error` unless empty, and like `one`.

    TensorFlow puts no words before an error of take_while(). An error of map() or filter() would
    begin with the path of the iterator.
    """

    def fail(*_: Any) -> Any:
        passes = ops.tfrfast_pass(error)
        passes.set_shape([])
        return passes

    is_error = tf.cast(tf.sign(tf.strings.length(error)), tf.int64)
    return take_while(one.take(is_error), fail)


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
