"""Packed features: rows of tokens, each with the values of several records."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["STARTS", "PackedFacts", "PackedFeatures", "positions_slot", "segments_slot"]

# The names of the slots that hold facts about packed records, which no feature has.
STARTS = "\0starts"


@dataclass(frozen=True)
class PackedFeatures:
    """The features of each budget of tokens, and how a dict names their facts."""

    features: tuple[tuple[str, ...], ...]
    tokens: tuple[int, ...]
    keys: tuple[str, str]

    def facts(self, parsed: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the columns that a dict has beside the features."""
        facts = {}
        for budget, names in enumerate(self.features):
            for name in names:
                facts[self.keys[0].format(name)] = parsed[segments_slot(budget)]
                facts[self.keys[1].format(name)] = parsed[positions_slot(budget)]
        return facts


@dataclass(frozen=True)
class PackedFacts:
    """What a batch tells about its packed records, made when it is asked for."""

    packing: PackedFeatures
    parsed: Mapping[str, Any]

    @property
    def segments(self) -> Any:
        return self._by_budget(segments_slot)

    @property
    def positions(self) -> Any:
        return self._by_budget(positions_slot)

    @property
    def starts(self) -> Any:
        return self.parsed[STARTS][:, :-1]

    @property
    def pieces(self) -> Any:
        return self.parsed[STARTS][:, -1]

    def columns(self) -> dict[str, Any]:
        return self.packing.facts(self.parsed)

    def _by_budget(self, slot: Callable[[int], str]) -> Any:
        """Returns the only budget's column, or a dict by feature."""
        if len(self.packing.features) == 1:
            return self.parsed[slot(0)]
        return {
            name: self.parsed[slot(budget)]
            for budget, names in enumerate(self.packing.features)
            for name in names
        }


def segments_slot(budget: int) -> str:
    return f"\0segments {budget}"


def positions_slot(budget: int) -> str:
    return f"\0positions {budget}"
