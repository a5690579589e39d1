"""Ctrl-C while an iterator waits for a network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow import internals, library


class InterruptibleIterator(internals.OwnedIterator):  # type: ignore[misc]
    """An iterator that raises KeyboardInterrupt if its wait was ended.

    Python raises KeyboardInterrupt while TensorFlow makes its own exception. The two together
    become a RuntimeError.
    """

    def __next__(self) -> Any:
        try:
            return super().__next__()
        except RuntimeError as error:
            if KeyboardInterrupt.__name__ in str(error):
                raise KeyboardInterrupt from None
            raise


def interruptible_or(dataset: Any, other: Callable[[], Any]) -> Any:
    """Returns such an iterator if Ctrl-C ends waits, else the other iterator."""
    if library.are_waits_ended and tf.executing_eagerly():
        return InterruptibleIterator(dataset)
    return other()
