"""The records in the order of the files."""

from __future__ import annotations

from tfrfast import _native
from tfrfast.base.arguments import IntegerArrayLike
from tfrfast.base.refused_arguments import explains_arguments
from tfrfast.order.order import PlainOrder, record_numbers

__all__ = ["InOrder"]


class InOrder(PlainOrder):
    """The records in the order of the files, the same in every epoch.

    - `indices`: only these record numbers, in this order. Repeats are allowed.

    >>> plan = tfr.Plan(tfr.InOrder(), 50, num_records=761)
    >>> plan.steps, len(plan.indices(0, 15))
    (16, 11)
    """

    seed = 0
    is_scattered = False

    @explains_arguments
    def __init__(self, *, indices: IntegerArrayLike | None = None) -> None:
        self._settle(indices=record_numbers(indices))

    def _positions(self, count: int) -> _native.Order:
        return _native.InOrder(count)
