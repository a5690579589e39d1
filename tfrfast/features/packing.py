"""Packed features: rows of tokens, each with the values of several records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["STARTS", "PackedFeatures", "positions_slot", "segments_slot"]

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

    def by_budget(self, parsed: Mapping[str, Any], slot: Any) -> Any:
        """Returns the only budget's column, or a dict by feature."""
        if len(self.features) == 1:
            return parsed[slot(0)]
        return {
            name: parsed[slot(budget)]
            for budget, names in enumerate(self.features)
            for name in names
        }


def segments_slot(budget: int) -> str:
    return f"\0segments {budget}"


def positions_slot(budget: int) -> str:
    return f"\0positions {budget}"
