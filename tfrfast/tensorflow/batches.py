"""Batches before reading, and the datasets of their contents: strings, or columns.

One call reads several small batches, because a call of a dataset's function, and unbatching a
dataset, cost as much as reading some hundred records. Batches that must all be full are read one by
one: they need no unbatching, so single calls cost less.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow.columns import TensorFeatures
from tfrfast.tensorflow.emission import Columns, Emission, Strings, emit_group
from tfrfast.tensorflow.functions import flat_map, parallel_flat_map, parallel_map
from tfrfast.tensorflow.library import ops
from tfrfast.tensorflow.making import made_once

# The approximate bytes of a call, and its most batches.
_GROUP_BYTES = 4 << 20
_MAX_GROUP = 8
_MOST_CALLS_OF_FEW = 16


def group_of(batch_bytes: int, count: int | None = None) -> int:
    """Returns the number of batches of that size in a call: a power of two, so that pieces are
    whole.

    With few batches (`count`), the number is smaller, so that several calls share the batches.
    """
    most = min(_MAX_GROUP, _GROUP_BYTES // max(1, batch_bytes))
    if count is not None:
        most = min(most, count // _MOST_CALLS_OF_FEW)
    return 1 << max(0, most.bit_length() - 1)


class Batches(ABC):
    """Batches that tensors identify: for example a step's number, or the records' addresses."""

    def __init__(
        self,
        size: int,
        is_full: bool,
        group: int,
        known_by: Any,
        *tensors: Any,
        finished: Callable[[Any], Any] = lambda dataset: dataset,
    ) -> None:
        assert group == 1 or not is_full
        self._size, self._group = size, group
        #: The rows of each batch, if all must be full.
        self.rows = size if is_full else None
        #: Returns the finished dataset, with its length, and repeated if requested.
        self.finished = finished
        #: A dataset of the tensors that identify batches, or groups of batches.
        self.known_by = known_by
        self._tensors = tensors
        self._fails = tf.constant(int(is_full), tf.int64)

    @abstractmethod
    def count(self, *group: Any) -> Any:
        """Returns the number of batches in a group."""

    @abstractmethod
    def member(self, number: int, *group: Any) -> tuple[Any, ...]:
        """Returns the tensors that identify a batch of a group. If the group is smaller, returns
        any batch or an empty batch.
        """

    @abstractmethod
    def read(self, *batch: Any) -> tuple[Any, Any, Any]:
        """Reads a batch as strings: strings before the first error, all errors, and the other
        strings.

        A batch that must be full fails if a record is bad.
        """

    @abstractmethod
    def decode(self, features: TensorFeatures, *batch: Any) -> tuple[Any, Any, Any]:
        """Reads a batch as columns of its good records, their number, and all errors."""

    def mapped(
        self,
        function: Callable[..., Any],
        *,
        calls: int | None = None,
        on_one_thread: bool = True,
    ) -> Any:
        """Maps a function over batches, like parallel_map(). Requires batches without groups."""
        assert self._group == 1
        return parallel_map(
            self.known_by,
            lambda *group: function(*self.member(0, *group)),
            calls=calls,
            on_one_thread=on_one_thread,
        )

    def mapped_each(self, function: Callable[..., Any], *, calls: int) -> Any:
        """Returns the elements of the one-element datasets that a function makes of each batch."""
        assert self._group == 1
        return parallel_flat_map(
            self.known_by, lambda *group: function(*self.member(0, *group)), calls=calls
        )

    def contents(self, features: TensorFeatures | None) -> Any:
        """Returns the batches as columns of the features or, without features, as strings."""
        values = type(self), self._size, self.rows is not None, self._group, features
        return self.finished(made_once(_contents, values, self.known_by, *self._tensors))


def _contents(
    kind: Callable[..., Batches],
    size: int,
    is_full: bool,
    group: int,
    features: TensorFeatures | None,
    *given: Any,
) -> Any:
    batches = kind(size, is_full, group, *given)
    read: Callable[..., tuple[Any, ...]] = batches.read
    emission: Emission = Strings(batches.rows)
    if features is not None:
        emission = Columns(features, batches.rows)

        def read(*batch: Any) -> tuple[Any, ...]:
            columns, good, error = batches.decode(features, *batch)
            return (*columns, good, error)

    if is_full:
        return batches.mapped(
            lambda *batch: emission.element(*map(tf.ensure_shape, read(*batch), emission.shapes))
        )
    types: list[Any] = []

    def read_group(*members: Any) -> tuple[Any, Any]:
        found = (batches.member(number, *members) for number in range(group))
        outputs = [output for member in found for output in read(*member)]
        types[:] = [output.dtype for output in outputs]
        return batches.count(*members), tf.raw_ops.OptionalFromValue(components=outputs)

    return flat_map(parallel_map(batches.known_by, read_group), emit_group(emission, types))


class StringBatches(Batches):
    """Batches of strings that have been read, and have no bad records."""

    def count(self, *_: Any) -> Any:
        return tf.constant(1, tf.int64)

    def member(self, _: int, *batch: Any) -> tuple[Any, ...]:
        return batch

    def read(self, *batch: Any) -> tuple[Any, Any, Any]:
        return batch[0], tf.constant(""), tf.zeros([0], tf.string)

    def decode(self, features: TensorFeatures, *batch: Any) -> tuple[Any, Any, Any]:
        columns = ops.tfrfast_parse_example(
            batch[0], features.text, column_types=features.column_types
        )
        return columns, tf.size(batch[0], tf.int64), tf.constant("")
