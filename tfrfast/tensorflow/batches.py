"""Batches before they are read, and the datasets of what they hold: strings, or columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow.columns import TensorFeatures
from tfrfast.tensorflow.emission import emit_batch, emit_columns, records
from tfrfast.tensorflow.functions import flat_map, parallel_map
from tfrfast.tensorflow.library import ops


class Batches(ABC):
    """Batches that are known by some tensors: a step's number, say, or the records' addresses."""

    def __init__(self, rows: int | None) -> None:
        #: The rows of each batch, if all must be full. Reading one with a bad record fails.
        self.rows = rows

    @property
    @abstractmethod
    def known_by(self) -> Any:
        """A dataset of the tensors by which batches are known."""

    @abstractmethod
    def read(self, *batch: Any) -> tuple[Any, Any, Any]:
        """A batch as strings: those before the first error, all errors, and the others."""

    @abstractmethod
    def decode(self, features: TensorFeatures, *batch: Any) -> tuple[Any, Any, Any]:
        """A batch as columns of its good records, how many these are, and all errors."""

    @abstractmethod
    def finished(self, dataset: Any) -> Any:
        """What is made of the batches, with its length, and repeated if that was asked for."""

    def mapped(self, function: Callable[..., Any]) -> Any:
        return parallel_map(self.known_by, function)

    def strings(self) -> Any:
        if self.rows is not None:
            full = [self.rows]
            batches = self.mapped(lambda *batch: tf.ensure_shape(self.read(*batch)[0], full))
        else:
            batches = flat_map(self.mapped(lambda *batch: records(*self.read(*batch))), emit_batch)
        return self.finished(batches)

    def columns(self, features: TensorFeatures) -> Any:
        def decode(*batch: Any) -> Any:
            columns, good, error = self.decode(features, *batch)
            columns = features.shaped(columns, self.rows)
            if self.rows is not None:
                return features.assemble(columns)
            return columns, tf.ensure_shape(good, []), tf.ensure_shape(error, [])

        batches = self.mapped(decode)
        if self.rows is None:
            batches = flat_map(batches, emit_columns(features.assemble))
        return self.finished(batches)


class StringBatches(Batches):
    """Batches of strings that have been read, and have no bad records."""

    def __init__(self, strings: Any, rows: int | None, finished: Callable[[Any], Any]) -> None:
        super().__init__(rows)
        self._strings, self._finished = strings, finished

    @property
    def known_by(self) -> Any:
        return self._strings

    def read(self, *batch: Any) -> tuple[Any, Any, Any]:
        return batch[0], tf.constant(""), tf.zeros([0], tf.string)

    def decode(self, features: TensorFeatures, *batch: Any) -> tuple[Any, Any, Any]:
        columns = ops.tfrfast_parse_example(
            batch[0], features.text, column_types=features.column_types
        )
        return columns, tf.size(batch[0], tf.int64), tf.constant("")

    def finished(self, dataset: Any) -> Any:
        return self._finished(dataset)
