"""What a Plan takes instead of a number of records, because it brings an order of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod

from tfrfast import _native

__all__ = ["OwnOrder"]


class OwnOrder(ABC):
    """An order of several data sets' records, whose numbers run on from set to set. Immutable."""

    #: From 0 to 2**64 - 1.
    seed: int
    #: Whether positions are batches, which have as many rows as fit.
    rows_vary = False

    @property
    @abstractmethod
    def num_records(self) -> int:
        """Of all data sets."""

    @abstractmethod
    def order_for(self, batch_size: int) -> _native.Order:
        """The order for batches of a rank of so many rows."""

    @abstractmethod
    def sample(self, count: int) -> list[int]:
        """About `count` record numbers from all of the data, a few neighbours here and there."""
