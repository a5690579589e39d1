"""Batches of records of about the same length, with a limit of tokens."""

from __future__ import annotations

from typing import Any, SupportsIndex

from tfrfast import _native
from tfrfast.base.arguments import Int64Array, IntegerArrayLike, integer
from tfrfast.base.refused_arguments import explains_arguments
from tfrfast.order.counted import CountedBatching, table_of

__all__ = ["ByTokens"]


class ByTokens(CountedBatching):
    """Batches of records of about the same length, with as many records as fit. Immutable.

    Replaces a number of rows. A batch's rows times its longest length are at most `tokens`. Records
    are put into buckets by length, so the order must scatter records: a Shuffle, or a Mixture,
    whose batches then come from one source each. Each record comes once, and batches are in random
    order. Ranks take whole batches: a position is a batch, also for `start` and `remainder`, and
    for the weights and the length of a Mixture.

    - `tokens`: from 1 to `2**31 - 1`.
    - `lengths`: the lengths of all records, for a Mixture of all sources end to end;
      `reader.lengths` are their bytes. Or, in a Loader, the name of a feature: its values are
      counted once, and kept beside the indexes.

    >>> batches = tfr.ByTokens(100, lengths=[10, 50, 10, 10, 49])
    >>> plan = tfr.Plan(tfr.Shuffle(), batches, num_records=5)
    >>> sorted(sorted(plan.indices(0, step).tolist()) for step in range(plan.steps))
    [[0, 2, 3], [1, 4]]
    """

    tokens: int

    @explains_arguments
    def __init__(
        self, tokens: SupportsIndex, lengths: IntegerArrayLike | str | None = None
    ) -> None:
        limit = integer("tokens", tokens, 1, 2**31 - 1)
        if lengths is None or isinstance(lengths, str):
            self._settle(tokens=limit, _named=lengths, _tables=())
        else:
            self._settle(tokens=limit, _named=None, _tables=(table_of(lengths),))

    def _counted(self) -> tuple[str, ...]:
        return () if self._named is None else (self._named,)

    def _native_order(
        self, num_records: int, indices: Int64Array | None, first: int = 0
    ) -> _native.Order:
        return _native.LengthBatches(self._opened()[0], first, num_records, indices, self.tokens)

    def _key(self) -> tuple[Any, ...]:
        return (self.tokens, *super()._key())

    def __repr__(self) -> str:
        return f"ByTokens({self.tokens})"
