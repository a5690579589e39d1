"""Records that the user asked tfrfast for by name, with tfrfast's own options."""

from __future__ import annotations

import os
from typing import Any

import tensorflow as tf

from tfrfast.storage.schemes import is_url
from tfrfast.tensorflow.history import Refusal
from tfrfast.tensorflow.source import Source

_TOLD = "_tfrfast_told"


class AskedRecords(tf.data.Dataset):  # type: ignore[misc]
    """The records of files as TensorFlow's own reader gives them, and the options of tfrfast.

    A plan reads `source`. TensorFlow's calls are made on this dataset, which is only iterated where
    tfrfast does not read.
    """

    def __init__(self, theirs: Any, source: Source | None, why: Refusal | None = None) -> None:
        #: None if only TensorFlow can read the files; `why` says so.
        self.source, self.why = source, why or Refusal("")
        super().__init__(theirs)

    @property
    def is_theirs(self) -> bool:
        """True if TensorFlow's own reader reads the same records."""
        source = self.source
        if source is None:
            return True
        names = source.names.known
        if names is None or source.skip_damage:
            return False
        return not any(is_url(os.fsdecode(name)) for name in names)

    def _inputs(self) -> list[Any]:
        return []

    @property
    def element_spec(self) -> Any:
        return tf.TensorSpec([], tf.string)


def told_as(dataset: Any, description: str) -> Any:
    """Notes the description of a source that is built already, for explain()."""
    vars(dataset)[_TOLD] = description
    return dataset


def description_of(dataset: Any) -> str:
    found: str = vars(dataset).get(_TOLD, "")
    return found
