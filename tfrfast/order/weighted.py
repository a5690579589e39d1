"""Records in proportion to their weights."""

from __future__ import annotations

import math
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from tfrfast import _native
from tfrfast.base.arguments import Int64Array, integer, seed_number
from tfrfast.base.refused_arguments import explains_arguments
from tfrfast.order.block_shuffle import BlockShuffle, shuffled
from tfrfast.order.counted import CountedBatching
from tfrfast.order.order import Order, spread

__all__ = ["Weighted"]

_MAX_SUM = 2**62


class Weighted(Order):
    """Draws each record in proportion to its weight, rounded down or up.

    With an expected count of 2.3, a record comes 2 or 3 times in each epoch. Other records are
    rounded up in each epoch.

    - `weights`: a weight for each record, 0 or more.
    - `length`: the number of draws of an epoch; by default the number of records.
    - `seed`: as in Shuffle.
    - `shuffle`: the order of an epoch's draws: `True`, `False` or a `BlockShuffle`.

    >>> plan = tfr.Plan(tfr.Weighted([1, 0, 3], length=8), 8)
    >>> sorted(plan.indices(0, 0).tolist())
    [0, 0, 2, 2, 2, 2, 2, 2]
    """

    num_records: int
    weights: Int64Array
    length: int
    shuffle: bool | BlockShuffle

    @explains_arguments
    def __init__(
        self,
        weights: npt.ArrayLike,
        length: SupportsIndex | None = None,
        *,
        seed: SupportsIndex = 0,
        shuffle: bool | BlockShuffle = True,
    ) -> None:
        whole = _whole(weights)
        whole.flags.writeable = False
        draws = len(whole) if length is None else length
        shuffled(shuffle)  # raises here if `shuffle` is wrong
        self._settle(
            num_records=len(whole),
            weights=whole,
            length=integer("length", draws, 0, _native.MAX_RECORDS),
            seed=seed_number(seed),
            shuffle=shuffle,
        )

    @property
    def is_scattered(self) -> bool:  # type: ignore[override]
        return shuffled(self.shuffle).is_scattered

    def _native_order(self, num_records: int, batching: int | CountedBatching) -> _native.Order:
        if isinstance(batching, CountedBatching):
            raise TypeError(
                f"{type(batching).__name__} needs an order in which all records come equally "
                "often, unlike a Weighted. Put records of one weight into one set, and make a "
                "Mixture of the sets."
            )
        draws = shuffled(self.shuffle)._positions(self.length)
        return _native.Weighted(draws, self.weights)

    def _sample(self, num_records: int, count: int) -> list[int]:
        drawn = np.flatnonzero(self.weights)
        return [*map(int, drawn[spread(len(drawn), count)])]


def _whole(weights: Any) -> Int64Array:
    """Returns integers unchanged, and floats times a power of two, so that their sum has 60 bits or
    more.

    The result is the same on every machine.
    """
    array = np.asarray(weights)
    if array.size == 0 and array.dtype == np.float64:
        array = array.astype(np.int64)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"weights must be numbers, not {array.dtype}.")
    if array.ndim != 1:
        raise ValueError(f"weights must have one dimension, not {array.ndim}.")
    bad = ~np.isfinite(array) | (array < 0)
    if bad.any():
        number = int(bad.argmax())
        raise ValueError(
            f"weights[{number}] is {array[number]}, but must be a finite number of 0 or more."
        )
    array = np.ascontiguousarray(array)
    if array.dtype.kind == "f":
        exact = array.astype(np.float64)
        _, exponent = math.frexp(exact.max(initial=0))
        exact = np.ldexp(exact, -exponent)  # below 1, so that no sum is infinite
        # math.fsum is exact, so the scale does not depend on how the sum is taken.
        _, exponent = math.frexp(math.fsum(exact.data))
        return np.ldexp(exact, 61 - exponent).astype(np.int64)
    if int(array.max(initial=0)) * len(array) > _MAX_SUM and sum(array.data) > _MAX_SUM:
        raise ValueError("The sum of integer weights must be at most 2**62. Give floats instead.")
    return array.astype(np.int64)
