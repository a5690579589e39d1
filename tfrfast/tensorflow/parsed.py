"""Batches of records, parsed by tfrfast in tf.data."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrfast.tensorflow import internals
from tfrfast.tensorflow.build.functions import parallel_map
from tfrfast.tensorflow.build.making import made_once
from tfrfast.tensorflow.columns import TensorFeatures


class ParsedDataset(tf.data.Dataset):  # type: ignore[misc]
    """Batches of records, parsed by tfrfast."""

    def __init__(self, records: Any, features: TensorFeatures) -> None:
        self._records, self.features = records, features
        self._made = made_once(_parsed, (features,), records)
        super().__init__(internals.variant_of(self._made))

    def _inputs(self) -> list[Any]:
        return [self._records]

    @property
    def element_spec(self) -> Any:
        return self._made.element_spec


def _parsed(features: TensorFeatures, records: Any) -> Any:
    return parallel_map(records, features.parse)
