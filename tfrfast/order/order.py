"""The base of every order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from tfrfast import _native
from tfrfast.base.arguments import Int64Array, IntegerArrayLike, integers
from tfrfast.order.counted import CountedBatching
from tfrfast.order.immutable import Immutable
from tfrfast.order.pickling import rebuild

__all__ = ["Order", "PlainOrder", "record_numbers", "spread"]

_PLACES = 8  # the places in the data set from which a sample is taken


class Order(Immutable, ABC):
    """The record at each position of an epoch, as a function of the epoch. Immutable.

    A Plan deals the positions to batches and ranks.
    """

    #: From 0 to 2**64 - 1.
    seed: int
    #: The number of records. None if the order fits any number.
    num_records: int | None = None
    #: True if consecutive records of the order may lie anywhere in the data.
    is_scattered = True

    @abstractmethod
    def _native_order(self, num_records: int, batching: int | CountedBatching) -> _native.Order:
        """Returns the core's order of `num_records` records. With a CountedBatching, its
        positions are batches or packs.

        Raises TypeError if this order does not go with it.
        """

    @abstractmethod
    def _sample(self, num_records: int, count: int) -> list[int]:
        """Returns about `count` of the order's records, from a few places all over the data."""

    def _arguments(self) -> dict[str, Any]:
        """Returns the constructor's arguments that make the order again."""
        return {name: value for name, value in vars(self).items() if name != "num_records"}

    def _key(self) -> tuple[Any, ...]:
        values = self._arguments().values()
        return tuple(each.tobytes() if isinstance(each, np.ndarray) else each for each in values)

    def __repr__(self) -> str:
        arguments = (
            f"{name}={f'<{len(value)} numbers>' if isinstance(value, np.ndarray) else repr(value)}"
            for name, value in self._arguments().items()
            if value is not None
        )
        return f"{type(self).__name__}({', '.join(arguments)})"

    def __reduce__(self) -> tuple[object, ...]:
        return rebuild, (_native.ORDER_VERSION, type(self), (), self._arguments())


class PlainOrder(Order):
    """An order of one data set's records, or of the records in `indices`."""

    indices: Int64Array | None

    @abstractmethod
    def _positions(self, count: int) -> _native.Order:
        """Returns the core's order of `count` positions."""

    def _native_order(self, num_records: int, batching: int | CountedBatching) -> _native.Order:
        if isinstance(batching, CountedBatching):
            raise TypeError(
                f"{type(batching).__name__} puts records together by their lengths, so it goes "
                f"with a Shuffle or a Mixture, not with {self!r}."
            )
        if self.indices is None:
            return self._positions(num_records)
        order = self._positions(len(self.indices))
        return _native.ChosenOrder(order, self.indices, num_records)

    def _sample(self, num_records: int, count: int) -> list[int]:
        if self.indices is None:
            numbers = spread(num_records, count)
        else:
            numbers = self.indices[spread(len(self.indices), count)]
        return [*map(int, numbers)]


def record_numbers(indices: IntegerArrayLike | None) -> Int64Array | None:
    """Returns a read-only copy."""
    if indices is None:
        return None
    numbers = np.array(integers("indices", indices, ValueError))
    if numbers.ndim != 1:
        raise ValueError(f"indices must have one dimension, not {numbers.ndim}.")
    numbers.flags.writeable = False
    return numbers


def spread(total: int, count: int) -> Int64Array:
    """Returns about `count` of the numbers below `total`, as runs of neighbours at a few places."""
    if total <= count:
        return np.arange(total)
    places = min(_PLACES, count)
    run = count // places
    starts = np.linspace(0, total - run, places).astype(np.int64)
    return (starts[:, None] + np.arange(run)).reshape(-1)
