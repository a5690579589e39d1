"""Batches of records of about the same length, with at most so many tokens each."""

from __future__ import annotations

from typing import Any, SupportsIndex

import numpy as np

from tfrfast import _native
from tfrfast._base.arguments import Int64Array, integer, integers
from tfrfast._base.own_order import OwnOrder

__all__ = ["ByLength"]

_PLACES = 8  # in the data set, from which a sample is taken


class ByLength(OwnOrder):
    """Records in buckets by length. A batch is of one bucket, with as many rows as are allowed."""

    rows_vary = True

    def __init__(self, lengths: Any, batch_tokens: SupportsIndex, seed: int) -> None:
        self.seed = seed
        self.batch_tokens = integer("batch_tokens", batch_tokens, 1, 2**31 - 1)
        checked = integers("lengths", lengths, ValueError)
        if checked.ndim != 1:
            raise ValueError(f"lengths must have one dimension, not {checked.ndim}.")
        self._lengths = np.maximum(checked, 1)
        self._check()
        buckets, members = _in_buckets(self._lengths, self.batch_tokens)
        self._order = _native.LengthBatches(buckets, members, len(checked))

    def _check(self) -> None:
        longest = int(self._lengths.max(initial=1))
        if longest > self.batch_tokens:
            raise ValueError(
                f"Record {int(self._lengths.argmax())} has a length of {longest}, and batch_tokens "
                f"is {self.batch_tokens}. Allow more, or give lengths=numpy.minimum(lengths, "
                f"{self.batch_tokens}) if you cut records off there."
            )

    @property
    def num_records(self) -> int:
        return len(self._lengths)

    def order_for(self, batch_size: int) -> _native.Order:
        return self._order

    def sample(self, count: int) -> list[int]:
        size = self.num_records
        if size <= count:
            return list(range(size))
        run = max(1, count // _PLACES)
        starts = np.linspace(0, size - run, min(_PLACES, count)).astype(np.int64)
        numbers: list[int] = (starts[:, None] + np.arange(run)).reshape(-1).tolist()
        return numbers

    def __repr__(self) -> str:
        return f"<{self.num_records} records, batch_tokens={self.batch_tokens}>"

    def __reduce__(self) -> tuple[object, ...]:
        return ByLength, (self._lengths, self.batch_tokens, self.seed)


def _in_buckets(lengths: Int64Array, tokens: int) -> tuple[list[tuple[int, int]], Int64Array]:
    """For each bucket its records and the rows of its batches; and the records of all buckets.

    The first bucket has records of length 1. Each next one allows lengths that are a tenth larger,
    rounded down, but at least one more. Within a bucket, records are in their own order.
    """
    bounds = [1]
    while bounds[-1] < tokens:
        bounds.append(max(bounds[-1] + 1, bounds[-1] * 11 // 10))
    number = np.searchsorted(np.array(bounds), lengths)
    members = np.argsort(number, kind="stable")
    counts = np.bincount(number, minlength=len(bounds))
    longest = np.zeros(len(bounds), np.int64)
    np.maximum.at(longest, number, lengths)
    shapes = zip(counts.tolist(), longest.tolist(), strict=True)
    return [(count, tokens // most) for count, most in shapes if count], members.astype(np.int64)
