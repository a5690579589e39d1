"""A dataset that is built on use."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrfast.tensorflow import internals
from tfrfast.tensorflow.interruption import interruptible_or
from tfrfast.tensorflow.saving import saved_as_it_bears


class LazyDataset(tf.data.Dataset):  # type: ignore[misc]
    """Stands for `_built`, a dataset of tf.data. `_history` holds the treatment of each call."""

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
        """Returns the dataset of which TensorFlow makes iterators."""
        return saved_as_it_bears(super()._apply_debug_options())
