"""The packs of `tfr.Packed` as docs/permutation.md specifies them, in plain Python."""

from __future__ import annotations

from typing import Any

from reference_order import Network, ReferencePermutation, derive_key, exchange, siphash24

FIXED = 2**63


class ReferencePacking:
    """The packs of records with `lengths`, a tuple for each record."""

    def __init__(
        self,
        lengths: list[tuple[int, ...]],
        tokens: tuple[int, ...],
        overlong: str = "error",
        indices: list[int] | None = None,
    ) -> None:
        self.tokens = tokens
        members: dict[tuple[int, ...], list[tuple[int, int]]] = {}
        for record in range(len(lengths)) if indices is None else indices:
            length, piece = lengths[record], 0
            if not any(length):
                continue
            if overlong == "cut":
                length = tuple(map(min, length, tokens))
            while overlong == "split" and length[0] > tokens[0]:
                members.setdefault(tokens, []).append((record, piece))
                length, piece = (length[0] - tokens[0],), piece + 1
            assert all(have <= most for have, most in zip(length, tokens, strict=True))
            members.setdefault(length, []).append((record, piece))
        self.classes = sorted(members)
        self.members = [members[length] for length in self.classes]
        self.pieces = sum(map(len, self.members))
        key = derive_key(11, 0, 0)
        self.packs = max(len(self.draw(key, FIXED + i, None) or []) for i in range(2))

    def chunks(self, key: tuple[int, int], attempt: int) -> list[tuple[int, int]]:
        size = max(1, -(-self.pieces // 2**15))
        chunks = []
        for c, (length, members) in enumerate(zip(self.classes, self.members, strict=True)):
            weight = sum(
                have * (max(self.tokens) // budget)
                for have, budget in zip(length, self.tokens, strict=True)
            )
            count = -(-len(members) // size)
            for i in range(count):
                factor = 256 + ((siphash24(key, [attempt, c, i]) >> 32) * 4096 >> 32)
                pieces = len(members) // count + (i < len(members) % count)
                chunks.append((-weight * factor, c, i, pieces))
        return [(c, pieces) for _, c, _, pieces in sorted(chunks)]

    def fitting(self, length: tuple[int, ...], space: tuple[int, ...]) -> int:
        return min(free // have for have, free in zip(length, space, strict=True) if have)

    def draw(
        self, key: tuple[int, int], attempt: int, packs: int | None
    ) -> list[list[tuple[int, int]]] | None:
        """Returns the (class, place) of the pieces of each pack, the last piece first."""
        # By free space: stacks of groups, and a group is a list of neighbouring packs. Here each
        # pack is a list of its own.
        groups: dict[tuple[int, ...], list[list[list[tuple[int, int]]]]] = {}
        place = [0] * len(self.classes)
        left, opened = self.pieces, 0

        def add(c: int, group: list[Any], each: int, space: tuple[int, ...]) -> None:
            nonlocal left
            for pack in group:
                pack[:0] = [(c, place[c] + i) for i in range(each)]
                place[c] += each
            left -= each * len(group)
            length = self.classes[c]
            rest = tuple(free - each * have for have, free in zip(length, space, strict=True))
            groups.setdefault(rest, []).append(group)

        for c, pieces in self.chunks(key, attempt):
            length = self.classes[c]
            while pieces:
                spare = 2**62 if packs is None else left - (packs - opened)
                spaces = sorted(space for space in groups if space >= length)[:64]
                fits = [space for space in spaces if self.fitting(length, space)]
                if fits and spare:
                    space = fits[0]
                    group = groups[space].pop()
                    each = min(self.fitting(length, space), max(1, pieces // len(group)), spare)
                    count = min(len(group), pieces // each, spare // each)
                    if count < len(group):
                        groups[space].append(group[count:])
                    if not groups[space]:
                        del groups[space]
                    add(c, group[:count], each, space)
                else:
                    each = min(self.fitting(length, self.tokens), pieces, spare + 1)
                    count = pieces // each
                    if each > 1:
                        count = min(count, spare // (each - 1))
                    opened += count
                    if packs is not None and opened > packs:
                        return None
                    add(c, [[] for _ in range(count)], each, self.tokens)
                pieces -= each * count
        return [pack for space in sorted(groups) for group in groups[space] for pack in group]

    def epoch(self, seed: int, epoch: int) -> list[list[tuple[int, int]]]:
        """Returns the (record, piece) of each row, at each position of an epoch."""
        shapes = None
        for attempt in range(32):
            shapes = shapes or self.draw(derive_key(11, seed, epoch), attempt, self.packs)
        shapes = shapes or self.draw(derive_key(11, 0, 0), FIXED, self.packs)
        assert shapes is not None
        place_key, row_key = derive_key(12, seed, epoch), derive_key(13, seed, epoch)
        networks = [
            Network(len(members), place_key, 24, siphash24(place_key, [c]))
            for c, members in enumerate(self.members)
        ]
        rows = []
        for number, pack in enumerate(shapes):
            row = [self.members[c][networks[c].at(place)] for c, place in pack]
            exchange(row, siphash24(row_key, [number]))
            rows.append(row)
        order = ReferencePermutation(self.packs, seed, epoch, purpose=10) if rows else None
        return [rows[order.at(p)] for p in range(self.packs)] if order else []
