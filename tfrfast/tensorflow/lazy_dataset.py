"""A dataset that is built on use."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrfast.tensorflow import internals
from tfrfast.tensorflow.interruption import interruptible_or
from tfrfast.tensorflow.saving import gains_by_rewriting, saves_positions_unasked


class LazyDataset(tf.data.Dataset):  # type: ignore[misc]
    """Stands for `_built`, a dataset of tf.data. `_history` holds the treatment of each call."""

    _iterated: Any = None

    # DatasetV2 keeps its variant tensor here.
    @property
    def _variant_tensor_attr(self) -> Any:
        return internals.variant_of(self._built)

    @_variant_tensor_attr.setter
    def _variant_tensor_attr(self, _: None) -> None:
        pass

    def __iter__(self) -> Any:
        return interruptible_or(self, super().__iter__)

    def _apply_debug_options(self) -> Any:
        """Returns the dataset of which TensorFlow makes iterators.

        TensorFlow optimises a dataset once, so all iterators are of the same dataset. A graph's
        tensors belong to the graph.
        """
        dataset = super()._apply_debug_options()
        if dataset is not self or not tf.executing_eagerly():
            return _to_iterate(dataset)
        if self._iterated is None:
            self._iterated = _to_iterate(self)
        return self._iterated


def _to_iterate(dataset: Any) -> Any:
    """Returns a dataset with the options of its iterations."""
    options = tf.data.Options()
    if saves_positions_unasked(dataset):
        options.experimental_symbolic_checkpoint = True
    if not gains_by_rewriting(dataset):
        options.experimental_optimization.apply_default_optimizations = False
    is_asked = options != tf.data.Options()
    return tf.data.Dataset.with_options(dataset, options) if is_asked else dataset
