"""Values as JSON has them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tfrfast.tables.statistics import FeatureStats

__all__ = ["plain", "plain_stats"]


def plain(value: Any, largest: float = math.inf) -> Any:
    """Returns `value`, with named tuples as dicts, byte strings as text, and numbers that JSON does
    not have, or beyond `largest`, as text.
    """
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return {key: plain(each, largest) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each, largest) for each in value]
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return str(value) if isinstance(value, int) and abs(value) > largest else value


def plain_stats(stats: FeatureStats, largest: float = math.inf) -> Any:
    """Returns all statistics of a feature."""
    frequent = [{"value": value, "count": count} for value, count in stats.frequent]
    return plain(stats._asdict() | {"frequent": frequent}, largest)
