"""Rows of tokens, each filled with several records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, SupportsIndex

from tfrfast import _native
from tfrfast.base.arguments import Int64Array, IntegerArrayLike, integer
from tfrfast.base.refused_arguments import explains_arguments
from tfrfast.order.counted import CountedBatching, table_of

__all__ = ["Fill", "Packed", "fill_of"]

_OVERLONG = ("error", "cut", "split")
_KEYS = ("{}_segment_ids", "{}_positions")


class Packed(CountedBatching):
    """Rows of tokens, each filled with several records. Immutable.

    Replaces a number of rows. A batch is `rows` packs, and a pack is a row of at most `tokens`. In
    each epoch, each record comes once, in a pack with others, drawn anew; every epoch has the same
    number of packs. The order is a Shuffle, or a Mixture, whose packs then come from one source
    each: a position is a pack, also for `start`, and for the weights and the length of a Mixture.

    - `tokens`: of a row, from 1 to `2**31 - 1`. Or a dict, for features that have a length of their
      own each: `{"inputs": 512, "targets": 512}`.
    - `rows`: packs of a batch of this rank.
    - `lengths`: an array with the length of each record, for a Mixture of all sources end to end.
      Or, in a Loader, the name of a feature, whose values are counted once and kept beside the
      indexes. A Loader packs all its features that have this length in the records it looks at. A
      list of names, of which the first is counted, packs these features alone. A dict of tokens
      needs no lengths.
    - `overlong`: what becomes of a record that is longer than a row. `"error"` raises, `"cut"`
      drops the end, and `"split"` makes pieces of a row and a rest, each of which comes once.
    - `keys`: the names of the columns of segments and positions where a batch becomes a dict.

    >>> packs = tfr.Packed(8, rows=1, lengths=[5, 3, 8, 2, 6])
    >>> plan = tfr.Plan(tfr.Shuffle(), packs, num_records=5)
    >>> sorted(sorted(plan.packs(0, step)[0].tolist()) for step in range(plan.steps))
    [[0, 1], [2], [3, 4]]
    """

    tokens: int | dict[str, int]
    rows: int
    overlong: str
    keys: tuple[str, str]
    #: The packed features of each budget. None: a Loader finds them.
    _features: tuple[tuple[str, ...], ...] | None

    @explains_arguments
    def __init__(
        self,
        tokens: SupportsIndex | Mapping[str, SupportsIndex],
        *,
        rows: SupportsIndex,
        lengths: IntegerArrayLike | str | Sequence[str] | None = None,
        overlong: Literal["error", "cut", "split"] = "error",
        keys: tuple[str, str] = _KEYS,
    ) -> None:
        if overlong not in _OVERLONG:
            raise ValueError(f'overlong must be "error", "cut" or "split", not {overlong!r}.')
        if len(keys) != 2 or any(each.count("{}") != 1 for each in keys) or keys[0] == keys[1]:
            raise ValueError(f"keys are two different names with {{}} in them, not {keys!r}.")
        features: tuple[tuple[str, ...], ...] | None = None
        named: str | tuple[str, ...] | None = None
        tables: tuple[_native.LengthTable, ...] = ()
        if isinstance(tokens, Mapping):
            if lengths is not None:
                raise TypeError(
                    "A dict of tokens names the features whose lengths count: leave lengths out."
                )
            tokens = {name: _tokens(each) for name, each in tokens.items()}
            features = tuple((name,) for name in tokens)
        else:
            tokens = _tokens(tokens)
            if isinstance(lengths, str):
                named = lengths
            elif isinstance(lengths, Sequence) and lengths and isinstance(lengths[0], str):
                named = tuple(map(str, lengths))
                features = (named,)
            elif lengths is not None:
                array: Any = lengths
                tables = (table_of(array),)
        self._settle(
            tokens=tokens,
            rows=integer("rows", rows, 1, 2**31 - 1),
            _named=named,
            overlong=overlong,
            keys=tuple(keys),
            _features=features,
            _tables=tables,
        )

    @property
    def _budgets(self) -> list[int]:
        return [*self.tokens.values()] if isinstance(self.tokens, dict) else [self.tokens]

    def _counted(self) -> tuple[str, ...]:
        if isinstance(self.tokens, dict):
            return tuple(self.tokens)
        if isinstance(self._named, str):
            return (self._named,)
        return () if self._named is None else self._named[:1]

    def _native_order(
        self, num_records: int, indices: Int64Array | None, first: int = 0
    ) -> _native.PackedOrder:
        return _native.PackedOrder(
            self._opened(), first, num_records, indices, self._budgets, self.overlong
        )

    def _key(self) -> tuple[Any, ...]:
        return (
            *self._budgets,
            self.rows,
            self.overlong,
            self.keys,
            self._features,
            *super()._key(),
        )

    def __repr__(self) -> str:
        return f"Packed({self.tokens}, rows={self.rows}, overlong={self.overlong!r})"


def _tokens(tokens: SupportsIndex) -> int:
    return integer("tokens", tokens, 1, 2**31 - 1)


@dataclass(frozen=True)
class Fill:
    """How full the packs of an epoch are, known before training."""

    #: The share of real tokens.
    share: float
    #: Packs of an epoch.
    packs: int
    #: Records with tokens, and the pieces of these records.
    records: int
    pieces: int
    #: Records without tokens, which are left out.
    left_out: int
    #: Records that were cut, or split.
    cut: int
    split: int
    #: Of a Mixture: the fill of each source, of one epoch of the source.
    sources: dict[str, Fill] = field(default_factory=dict)
    #: Of a Mixture: the share of all real tokens that comes from each source, by the first weights.
    token_shares: dict[str, float] = field(default_factory=dict)


def fill_of(order: _native.PackedOrder, batching: Packed) -> Fill:
    """Returns the fill of one data set."""
    facts = order.fill
    tokens = sum(facts.pop("tokens"))
    space = facts["packs"] * sum(batching._budgets)
    return Fill(share=tokens / space if space else 1.0, **facts)
