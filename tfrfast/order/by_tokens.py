"""Batches of records of about the same length, with a limit of tokens."""

from __future__ import annotations

from typing import SupportsIndex

import numpy as np

from tfrfast import _native
from tfrfast.base.arguments import Int64Array, IntegerArrayLike, integer, integers
from tfrfast.base.refused_arguments import explains_arguments

__all__ = ["ByTokens"]


class ByTokens:
    """Batches of records of about the same length, with as many records as fit. Immutable.

    Replaces a number of rows. A batch's rows times its longest length are at most `tokens`. Records
    are put into buckets by length, so the order must scatter records: a Shuffle, or a Mixture,
    whose batches then come from one source each. Each record comes once, and batches are in random
    order. Ranks take whole batches: a position is a batch, also for `start` and `remainder`, and
    for the weights and the length of a Mixture.

    - `tokens`: from 1 to `2**31 - 1`.
    - `lengths`: the lengths of all records, for a Mixture of all sources end to end. The default of
      a Loader is the bytes of each record, from the index.

    >>> batches = tfr.ByTokens(100, lengths=[10, 50, 10, 10, 49])
    >>> plan = tfr.Plan(tfr.Shuffle(), batches, num_records=5)
    >>> sorted(sorted(plan.indices(0, step).tolist()) for step in range(plan.steps))
    [[0, 2, 3], [1, 4]]
    """

    __slots__ = ("lengths", "tokens")

    tokens: int
    lengths: Int64Array | None

    @explains_arguments
    def __init__(self, tokens: SupportsIndex, lengths: IntegerArrayLike | None = None) -> None:
        object.__setattr__(self, "tokens", integer("tokens", tokens, 1, 2**31 - 1))
        checked = None
        if lengths is not None:
            checked = np.array(integers("lengths", lengths, ValueError))
            if checked.ndim != 1:
                raise ValueError(f"lengths must have one dimension, not {checked.ndim}.")
            checked.flags.writeable = False
        object.__setattr__(self, "lengths", checked)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("A ByTokens cannot be changed; make another one.")

    def _batches(
        self, num_records: int, indices: Int64Array | None, first: int = 0
    ) -> _native.LengthBatches:
        """Returns batches of the records from `first` on. Record numbers count from `first`."""
        assert self.lengths is not None
        records = np.arange(num_records) if indices is None else indices
        for number in (records.min(initial=0), records.max(initial=0)) if len(records) else ():
            if not 0 <= number < num_records:
                raise ValueError(f"indices hold {number}, but there are {num_records} records.")
        lengths = np.maximum(self.lengths[first : first + num_records][records], 1)
        longest = int(lengths.max(initial=1))
        if longest > self.tokens:
            raise ValueError(
                f"Record {first + int(records[lengths.argmax()])} has a length of {longest}, and "
                f"ByTokens allows {self.tokens}. Allow more, or give "
                f"lengths=numpy.minimum(lengths, {self.tokens}) if you cut records off there."
            )
        buckets, members = _in_buckets(lengths, self.tokens)
        return _native.LengthBatches(buckets, records[members], num_records)

    def _check(self, num_records: int) -> None:
        """Raises unless `lengths` has a length for each record."""
        if self.lengths is None:
            raise TypeError(
                "ByTokens needs lengths, one for each record. For their bytes, give reader.lengths."
            )
        if len(self.lengths) != num_records:
            raise ValueError(f"There are {len(self.lengths)} lengths, but {num_records} records.")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ByTokens):
            return NotImplemented
        return self.tokens == other.tokens and np.array_equal(self.lengths, other.lengths)  # type: ignore[arg-type]

    def __hash__(self) -> int:
        return hash(self.tokens)

    def __repr__(self) -> str:
        return f"ByTokens({self.tokens})"

    def __reduce__(self) -> tuple[object, ...]:
        return ByTokens, (self.tokens, self.lengths)


def _in_buckets(lengths: Int64Array, tokens: int) -> tuple[list[tuple[int, int]], Int64Array]:
    """Returns the records and the batch rows of each bucket, and the places of all records by
    bucket.

    The first bucket has records of length 1. The limit of each next bucket is a tenth larger,
    rounded down, but at least one more. A bucket keeps the order of its records.
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
