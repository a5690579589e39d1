"""The statistics of features as JSON."""

from __future__ import annotations

import math
from typing import Any

from tfrfast.tables.statistics import FeatureStats

__all__ = ["json_of_stats"]


def json_of_stats(stats: FeatureStats) -> dict[str, Any]:
    """Returns all statistics of a feature."""
    facts = stats._asdict()
    facts["histogram"] = stats.histogram._asdict()
    facts["frequent"] = [
        {
            "value": value.decode(errors="backslashreplace") if isinstance(value, bytes) else value,
            "count": count,
        }
        for value, count in stats.frequent
    ]
    cleaned: dict[str, Any] = _without_nan(facts)
    return cleaned


def _without_nan(value: Any) -> Any:
    """Returns `value` with text in place of numbers that JSON does not have."""
    if isinstance(value, dict):
        return {key: _without_nan(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_without_nan(each) for each in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
