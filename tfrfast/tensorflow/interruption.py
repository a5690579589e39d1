"""Ctrl-C while an iterator waits for a network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow import internals, library


class InterruptibleIterator(internals.OwnedIterator):  # type: ignore[misc]
    """An iterator whose wait was ended raises KeyboardInterrupt.

    Python raises that while TensorFlow makes its own exception. What comes of the two is a
    RuntimeError.
    """

    def __next__(self) -> Any:
        try:
            return super().__next__()
        except RuntimeError as error:
            if KeyboardInterrupt.__name__ in str(error):
                raise KeyboardInterrupt from None
            raise


def interruptible_or(dataset: Any, other: Callable[[], Any]) -> Any:
    """Such an iterator where Ctrl-C ends waits, else another."""
    if library.are_waits_ended and tf.executing_eagerly():
        return InterruptibleIterator(dataset)
    return other()
