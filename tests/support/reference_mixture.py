"""The order of a mixture as docs/permutation.md specifies it, in plain Python."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache

from reference_order import Network, ReferencePermutation, derive_key, exchange, siphash24

Segment = tuple[int, int, list[int]]  # epoch, position, weights
Draw = tuple[int, int]  # source, number of its draw since the beginning of the run


def largest_remainders(weights: Sequence[int], count: int) -> list[int]:
    period = sum(weights)
    quotas = [count * weight // period for weight in weights]
    order = sorted(range(len(weights)), key=lambda s: (-(count * weights[s] % period), s))
    for s in order[: count - sum(quotas)]:
        quotas[s] += 1
    return quotas


@cache
def spread(weights: tuple[int, ...], quotas: tuple[int, ...]) -> list[int]:
    """Returns the slot at each position, by Tijdeman's rule."""
    period = sum(weights)
    common = math.lcm(*(weight for weight in weights if weight))
    sharing = sum(weight > 0 for weight in weights)
    per_d = 2 * (sharing - 1) if sharing > 1 else 1  # 1 / d
    first = [sum(quotas[:s]) for s in range(len(quotas))]
    taken = [0] * len(weights)
    slots = []
    for position in range(sum(quotas)):
        left = [s for s in range(len(weights)) if taken[s] < quotas[s]]
        time = (position + 1) * per_d
        ready = [s for s in left if time * weights[s] >= (taken[s] * per_d + 1) * period]
        late = per_d - 1 if ready else 1
        s = min(ready or left, key=lambda s: ((taken[s] * per_d + late) * common // weights[s], s))
        slots.append(first[s] + taken[s])
        taken[s] += 1
    return slots


def shuffled(key: tuple[int, int], begin: int, period: int, size: int, whole: int) -> list[int]:
    """Returns the slots of a period in a random order, or the slots of a rest after periods of
    `whole` slots.
    """
    tweak = siphash24(key, [begin, period])
    if whole > 256:
        network = Network(size, key, 24, tweak)
        return [network.at(position) for position in range(size)]
    slots = list(range(size))
    exchange(slots, tweak)
    return slots


class ReferenceMixture:
    """All positions of a run, one after the other, from its beginning."""

    def __init__(
        self,
        sizes: list[int],
        segments: list[Segment],
        *,
        seed: int,
        length: int,
        order: str,
        repeats: bool,
        unit: int = 1,
    ) -> None:
        self.sizes, self.segments, self.seed, self.unit = sizes, segments, seed, unit
        self.length, self.order, self.repeats = length // unit, order, repeats
        # The next draws of each source: first the left-over draws, then the following draws.
        self.left_over: list[list[int]] = [[] for _ in sizes]
        self.next = [0] * len(sizes)
        self.known: dict[tuple[int, int, int], Callable[[int], int]] = {}

    def epochs(self, count: int) -> list[list[int]]:
        """Returns the record numbers of the first `count` epochs."""
        return [self._epoch(epoch) for epoch in range(count)]

    def _epoch(self, epoch: int) -> list[int]:
        changes = [(p // self.unit, w) for e, p, w in self.segments if e == epoch]
        before = [w for e, p, w in self.segments if e < epoch]
        if not changes or changes[0][0] != 0:
            changes.insert(0, (0, before[-1]))
        if not self.repeats:
            self.left_over = [[] for _ in self.sizes]
            self.next = [epoch * (size // self.unit) for size in self.sizes]
        records: list[int] = []
        ends = [begin for begin, _ in changes[1:]] + [self.length]
        for (begin, weights), end in zip(changes, ends, strict=True):
            for source, draw in self._stretch(epoch, begin, end, weights):
                records += self._records(source, draw)
        return records

    def _stretch(self, epoch: int, begin: int, end: int, weights: list[int]) -> list[Draw]:
        """Returns the draws of the units from `begin` to `end`, possibly with some more."""
        draws: list[Draw] = []
        key = derive_key(3, self.seed, epoch)
        whole, rest = divmod(self.length - begin, sum(weights))
        for period in range(whole + (rest > 0)):
            if begin + len(draws) >= end:
                break
            owned = weights if period < whole else largest_remainders(weights, rest)
            size = sum(owned)
            if self.order == "spread":
                slots = spread(tuple(weights), tuple(owned))
            else:
                slots = shuffled(key, begin, period, size, sum(weights))
            mine = [[self._take(s) for _ in range(owned[s])] for s in range(len(owned))]
            owner = [(s, i) for s in range(len(owned)) for i in range(owned[s])]
            come = slots[: end - begin - len(draws)]
            draws += [(owner[slot][0], mine[owner[slot][0]][owner[slot][1]]) for slot in come]
            for slot in sorted(slots[len(come) :], reverse=True):
                source, i = owner[slot]
                self.left_over[source].insert(0, mine[source][i])
        return draws

    def _take(self, source: int) -> int:
        if self.left_over[source]:
            return self.left_over[source].pop(0)
        self.next[source] += 1
        return self.next[source] - 1

    def _records(self, source: int, draw: int) -> list[int]:
        """The records of a unit."""
        size, unit = self.sizes[source], self.unit
        source_seed = siphash24(derive_key(4, self.seed, 0), [source])
        places: list[tuple[int, int]]
        if self.repeats:
            places = [divmod(draw * unit + row, size) for row in range(unit)]
        else:
            epoch, number = divmod(draw, size // unit)
            places = [(epoch, number * unit + row) for row in range(unit)]
        begin = sum(self.sizes[:source])
        return [begin + self._at(size, source_seed, *place) for place in places]

    def _at(self, size: int, seed: int, epoch: int, place: int) -> int:
        known = self.known.setdefault(
            (size, seed, epoch), ReferencePermutation(size, seed, epoch).at
        )
        return known(place)
