"""An order in which any record may come at any place."""

from __future__ import annotations

from typing import SupportsIndex

from tfrfast import _native
from tfrfast.base.arguments import IntegerArrayLike, seed_number
from tfrfast.base.refused_arguments import explains_arguments
from tfrfast.order.counted import CountedBatching
from tfrfast.order.order import PlainOrder, record_numbers

__all__ = ["Shuffle"]


class Shuffle(PlainOrder):
    """Every record exactly once, at any place, in a new order every epoch.

    The order is a bijection. It is computed position by position, so it takes no memory.

    - `seed`: from `-2**63` to `2**64 - 1`. A negative seed is the same as `seed + 2**64`.
    - `indices`: only these record numbers. Repeats are allowed.

    >>> plan = tfr.Plan(tfr.Shuffle(seed=7, indices=[3, 1, 4]), 3, num_records=5)
    >>> sorted(plan.indices(0, 0).tolist())
    [1, 3, 4]
    """

    @explains_arguments
    def __init__(self, seed: SupportsIndex = 0, *, indices: IntegerArrayLike | None = None) -> None:
        self._settle(seed=seed_number(seed), indices=record_numbers(indices))

    def _positions(self, count: int) -> _native.Order:
        return _native.Shuffle(count)

    def _native_order(self, num_records: int, batching: int | CountedBatching) -> _native.Order:
        if isinstance(batching, CountedBatching):
            return batching._native_order(num_records, self.indices)
        return super()._native_order(num_records, batching)
