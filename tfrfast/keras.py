"""A Loader's epochs as a data set for Keras: a PyDataset of Keras 3, or a Sequence of Keras 2."""

from __future__ import annotations

import operator
import threading
from collections.abc import Iterator, Sequence
from typing import Any, SupportsIndex

import keras
import numpy as np

from tfrfast import _native
from tfrfast.columns import Batch, Bytes, Column, Pictures, Ragged, Sparse
from tfrfast.features import FixedLenSequence, VarLen
from tfrfast.loading.loader import Loader
from tfrfast.order import Packed, Plan

_HAS_PY_DATASET = hasattr(keras.utils, "PyDataset")
_Base: Any = keras.utils.PyDataset if _HAS_PY_DATASET else keras.utils.Sequence


class KerasEpochs(_Base):  # type: ignore[misc]
    """The batches of a Loader. Each pass of Keras takes a whole epoch.

    Keras requests batches by number: in any order, some only to examine them, some in vain, and
    from several threads. So the first requested number stands for the epoch's first batch, the next
    new number for the second batch, and so on. A repeated number gives the same batch again. Each
    pass over all numbers has each batch once, and the loader reads ahead in its own order.

    Before each pass Keras asks for the number of batches. If all batches of this epoch were
    requested by then, the next epoch begins.

    Over TensorFlow, Keras examines batches 0 and 1 before its epochs begin. A column with the same
    size in both must have this size in all batches. So if sizes may differ, the examined batch 1 is
    wider than the batch 1 of the training.
    """

    def __init__(self, loader: Loader, inputs: Sequence[str], label: str | None) -> None:
        super().__init__()
        self._loader = loader._counted_copy()
        self._inputs = tuple(inputs)
        self._label = label
        self._steps = len(loader)
        self._home = _native.HomeProcess()
        self._looks = _HAS_PY_DATASET and keras.backend.backend() == "tensorflow"
        # Widths of the columns of batch 0 that Keras has examined.
        self._widths: dict[str, int] = {}
        self._lock = threading.Lock()
        #: The epoch in delivery to Keras.
        self.epoch = loader.epoch
        self._places: dict[int, int] = {}  # the epoch's batch that a number stands for
        self._next = (self.epoch, 0)  # the epoch and place of the iterator's next batch
        self._batches: Iterator[Any] | None = None

    def on_epoch_begin(self) -> None:
        """Called by Keras, which from here on trains on the requested batches."""
        self._looks = False

    @property
    def num_batches(self) -> int:
        """The number of batches of an epoch. A new pass may begin after this call."""
        with self._lock:
            if self._steps and len(self._places) == self._steps:
                self.epoch += 1
                self._places.clear()
        return self._steps

    def __len__(self) -> int:
        return self._steps if _HAS_PY_DATASET else self.num_batches

    def __getitem__(self, index: SupportsIndex) -> tuple[Any, ...]:
        number = operator.index(index)
        if not 0 <= number < self._steps:
            raise IndexError(f"There is no batch {number}: an epoch has {self._steps}.")
        if not self._home.is_this_one():
            raise RuntimeError(
                "Another process would not know which batches this one has taken. Leave "
                "use_multiprocessing off: the Loader reads and decodes in threads of its own."
            )
        with self._lock:
            place = self._places.get(number, len(self._places))
            batch = self._batch_at(place)
            self._places[number] = place
        return self._for_keras(batch, number)

    def __reduce__(self) -> Any:
        raise TypeError(
            "The result of to_keras() cannot be pickled: another process would not know which "
            "batches this process has taken. Pickle the Loader, and call to_keras() there."
        )

    @property
    def workers(self) -> int:
        """Read by Keras. Always 1: with more workers, Keras 3 gives batches of one pass to the next
        pass.
        """
        return 1

    @workers.setter
    def workers(self, workers: int) -> None:
        if workers > 1:
            raise ValueError(
                "workers must be 1. The Loader reads and decodes in threads of its own: give it "
                "threads=."
            )

    def _batch_at(self, place: int) -> Any:
        if self._next != (self.epoch, place):
            position = self._loader.plan.position_after(place - 1)
            state = self._loader.state_dict() | {"epoch": self.epoch, "position": position}
            self._loader.load_state_dict(state)
            self._batches = iter(self._loader)
            self._next = self.epoch, place
        if self._batches is None:
            self._batches = iter(self._loader)
        batch = next(self._batches)
        self._next = self.epoch, place + 1
        if place + 1 == self._steps:
            next(self._batches, None)  # ends the epoch
            self._batches = None  # the next epoch is read only when Keras begins it
            self._next = self.epoch + 1, 0
        return batch

    def _for_keras(self, batch: Any, number: int) -> tuple[Any, ...]:
        packed = isinstance(batch, Batch) and batch.segments is not None
        weights = None
        if self._loader.plan.remainder == "pad" and isinstance(batch, Batch):
            weights = batch.valid
        if packed:
            if weights is not None:
                several = isinstance(batch.segments, dict)
                budgets = [*batch.segments.values()] if several else [batch.segments]
                weights = np.any([segments.any(axis=1) for segments in budgets], axis=0)
            batch = batch.as_dict()
        inputs = {name: self._taken(name, batch, number) for name in self._inputs}
        parts = [inputs if len(inputs) > 1 else inputs[self._inputs[0]]]
        if self._label is not None:
            parts.append(self._taken(self._label, batch, number))
        if self._loader.plan.remainder == "pad":
            if weights is None:
                raise TypeError(
                    'With remainder="pad", transform must return the Batch it was given, in which '
                    f"it may replace columns, not {type(batch).__name__}: its rows have weights."
                )
            parts.append(weights.astype(np.float32))
        return tuple(parts)

    def _taken(self, name: str, batch: Any, number: int) -> Any:
        """Returns a column in Keras's form."""
        value = _taken(name, batch[name])
        if not self._looks or number > 1 or not _has_any_width(self._loader, name):
            return value
        width = int(value.shape[1])
        if number == 0:
            self._widths[name] = width
            return value
        return _widened(value, 1 if width + 1 != self._widths.get(name) else 2)


def keras_epochs(loader: Loader, features: str | Sequence[str], label: str | None) -> KerasEpochs:
    """See `Loader.to_keras`."""
    inputs = [features] if isinstance(features, str) else list(features)
    if loader.features is None and loader.transform is None:
        raise ValueError("to_keras() needs columns. Give the Loader features=.")
    if not inputs:
        raise ValueError("features must name at least one column.")
    columns = [*(loader.features or {}), *_packed_facts(loader.plan)]
    for name in (*inputs, *([] if label is None else [label])):
        if loader.transform is None and name not in columns:
            raise ValueError(f"There is no column {name!r}. The Loader has {', '.join(columns)}.")
    if loader.step or loader.state_dict()["position"]:
        raise ValueError(
            f"The Loader stands in the middle of epoch {loader.epoch}, and Keras has whole epochs "
            f"only. Call set_epoch({loader.epoch}) to begin it again, or use to_tf_dataset(), "
            "which begins where the Loader stands."
        )
    if label is None and loader.plan.remainder == "pad":
        raise ValueError(
            'With remainder="pad", weights leave out the rows that pad a batch, and weights need a '
            'label. Give a label, or use remainder="keep" or "drop".'
        )
    return KerasEpochs(loader, inputs, label)


def _packed_facts(plan: Plan) -> list[str]:
    """Returns the columns that packed batches have besides features."""
    if not isinstance(plan.batching, Packed):
        return []
    names = sum(plan.batching._features or (), ())
    return [key.format(name) for key in plan.batching.keys for name in names]


def _has_any_width(loader: Loader, name: str) -> bool:
    """True if the second dimension of a column may differ between batches."""
    spec = (loader.features or {}).get(name)
    return isinstance(spec, FixedLenSequence) or (isinstance(spec, VarLen) and spec.sparse)


def _widened(value: Any, by: int) -> Any:
    """Returns the array with `by` more columns of padding."""
    import tensorflow as tf

    if isinstance(value, tf.SparseTensor):
        rows, width = value.dense_shape.numpy()
        return tf.SparseTensor(value.indices, value.values, (rows, width + by))
    padding = [(0, by if axis == 1 else 0) for axis in range(len(value.shape))]
    if isinstance(value, np.ndarray):
        return np.pad(value, padding)
    return tf.pad(value, padding, constant_values="")


def _taken(name: str, column: Column) -> Any:
    """Returns a column in Keras's form."""
    if isinstance(column, np.ndarray):
        return column
    if keras.backend.backend() != "tensorflow":
        raise TypeError(
            f"Column {name!r} is {type(column).__name__}, which Keras takes only where TensorFlow "
            "is its backend. Use a spec that makes it an array: FixedLen or FixedLenSequence of "
            "numbers, or Image with a size."
        )
    return _tensor_of(column)


def _tensor_of(column: Any) -> Any:
    import tensorflow as tf

    if isinstance(column, Bytes):
        return tf.constant(column.to_numpy(), tf.string)
    if isinstance(column, Pictures):
        column = column.to_ragged()
    if isinstance(column, Ragged):
        values = _tensor_of(column.values)
        return tf.RaggedTensor.from_row_splits(values, column.row_splits, validate=False)
    if isinstance(column, Sparse):
        return tf.SparseTensor(column.indices, _tensor_of(column.values), column.dense_shape)
    return tf.constant(column)
