"""Exact quantiles from counts: each pass counts the next bits of the numbers that may be meant."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tfrfast import _native

__all__ = ["Counted", "QuantileSearch", "num_passes"]

_KEY_BITS = {"float32": 32, "int64": 64}
_MANY_POSITIONS = 64

#: Counts of a pass, and the prefixes of each position that they belong to, end to end.
Counted = tuple[Sequence[Sequence[int]], NDArray[np.uint64]]


def bits_of(positions: int) -> int:
    """Returns the number of bits that a pass counts: fewer for many positions, to save memory."""
    return 16 if positions <= _MANY_POSITIONS else 8


def num_passes(kind: str, positions: int) -> int:
    return _KEY_BITS[kind] // bits_of(positions)


def counter(kind: str, pass_: int, prefixes: Sequence[Sequence[int]]) -> Any:
    """Returns a function that counts an array of rows, and the counts."""
    counts = _native.NumberCounts(bits_of(len(prefixes)), pass_, prefixes)
    return counts, counts.add_floats if kind == "float32" else counts.add_ints


class QuantileSearch:
    """The quantiles of the numbers at each position of a row, narrowed from pass to pass."""

    def __init__(self, kind: str, numbers: Sequence[int], quantiles: Sequence[float]) -> None:
        self._kind = kind
        self._quantiles = quantiles
        self._numbers = numbers
        #: By position: the wanted ranks, and the prefix and the rank among the numbers with it.
        self._found: list[dict[int, tuple[int, int]]] = []
        for count in numbers:
            ranks = {rank for each in quantiles for rank in _ranks(each, count)} if count else set()
            self._found.append({rank: (0, rank) for rank in ranks})

    def prefixes(self) -> list[set[int]]:
        """The prefixes at each position whose numbers the next pass must count."""
        return [{prefix for prefix, _ in found.values()} for found in self._found]

    def narrow(self, counted: Sequence[Counted]) -> None:
        """Takes the counts of a pass over some data each, which belong together."""
        bits = bits_of(len(self._found))
        places = [_places(prefixes) for prefixes, _ in counted]
        for position, found in enumerate(self._found):
            ends = {
                prefix: np.cumsum(
                    sum(
                        tables[place[position, prefix]]
                        for place, (_, tables) in zip(places, counted, strict=True)
                    )
                )
                for prefix in {prefix for prefix, _ in found.values()}
            }
            for rank, (prefix, left) in found.items():
                upto = ends[prefix]
                value = int(np.searchsorted(upto, left, side="right"))
                before = int(upto[value - 1]) if value else 0
                found[rank] = (prefix << bits | value, left - before)

    def values(self) -> NDArray[np.float64]:
        """The quantiles after the last pass, as NumPy's `quantile` gives them."""
        result = np.full((len(self._quantiles), len(self._numbers)), math.nan)
        for position, count in enumerate(self._numbers):
            numbers = {rank: self._number(key) for rank, (key, _) in self._found[position].items()}
            for at, quantile in enumerate(self._quantiles):
                if count:
                    low, high = (numbers[rank] for rank in _ranks(quantile, count))
                    share = quantile * (count - 1) - math.floor(quantile * (count - 1))
                    result[at, position] = _between(low, high, share)
        return result

    def _number(self, key: int) -> float:
        if self._kind == "int64":
            return float(key - (1 << 63))
        bits = key ^ (1 << 31) if key >> 31 else key ^ 0xFFFFFFFF
        return float(np.uint32(bits).view(np.float32))


def _ranks(quantile: float, count: int) -> tuple[int, int]:
    low = math.floor(quantile * (count - 1))
    return low, min(low + 1, count - 1)


def _between(low: float, high: float, share: float) -> float:
    if share == 0 or low == high:
        return low
    if math.isinf(low) or math.isinf(high):
        return low + high
    return high - (high - low) * (1 - share) if share >= 0.5 else low + (high - low) * share


def _places(prefixes: Sequence[Sequence[int]]) -> dict[tuple[int, int], int]:
    """Returns the place of the counts of each position and prefix."""
    each = ((position, prefix) for position, some in enumerate(prefixes) for prefix in some)
    return {one: place for place, one in enumerate(each)}
