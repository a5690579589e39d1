"""Weights as whole numbers without a common divisor."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from numbers import Rational
from typing import Any, TypeAlias

import numpy as np

__all__ = ["MAX_PERIOD", "Weight", "reduced"]

Weight: TypeAlias = int | float | Fraction

MAX_PERIOD = 2**20
_AT_ONCE = 2**20  # shares in arrays
_ROUNDING = 1e-15
_MANY_SOURCES = 64


def reduced(weights: Mapping[str, Any]) -> list[int]:
    """Returns the smallest whole numbers with the same ratios. Floats are read as their shortest
    decimal.

    Raises ValueError if their sum, the period, is larger than MAX_PERIOD.
    """
    exact = [_fraction(name, weight) for name, weight in weights.items()]
    if not any(exact):
        raise ValueError("A mixture needs a source whose weight is above 0.")
    denominator = math.lcm(*(weight.denominator for weight in exact))
    whole = _without_divisor([int(weight * denominator) for weight in exact])
    if sum(whole) <= MAX_PERIOD:
        return whole
    nearest = dict(zip(weights, _nearest(whole), strict=True))
    raise ValueError(
        f"These weights have a period of {sum(whole):,} records, and at most {MAX_PERIOD:,} are "
        f"allowed: weights are kept exactly in every period. The nearest weights that fit are "
        f"{nearest}."
    )


def _fraction(name: str, weight: Any) -> Fraction:
    if isinstance(weight, (float, np.floating)):
        if not math.isfinite(weight):
            raise ValueError(f"The weight of {name!r} is {weight}, but must be a finite number.")
        exact = Fraction(str(weight))  # the shortest decimal: 0.7 is 7/10
    elif isinstance(weight, (Rational, np.integer)) and not isinstance(weight, bool):
        exact = Fraction(int(weight)) if isinstance(weight, np.integer) else Fraction(weight)
    else:
        raise TypeError(
            f"The weight of {name!r} must be an int, a float or a Fraction, not "
            f"{type(weight).__name__}."
        )
    if exact < 0:
        raise ValueError(f"The weight of {name!r} is {weight}, but must be 0 or more.")
    return exact


def _without_divisor(whole: list[int]) -> list[int]:
    divisor = math.gcd(*whole)
    return [weight // divisor for weight in whole]


def _nearest(whole: list[int]) -> list[int]:
    """Returns the closest weights with a period of at most MAX_PERIOD. No weight becomes 0.

    If several periods are equally good up to the rounding of floats, takes the shortest: 3 and 7
    for 0.1 + 0.2 and 0.7. With many sources, a full search would take seconds, so only the longest
    period is tried.
    """
    total = sum(whole)
    if len(whole) > _MANY_SOURCES:
        return _without_divisor(_in_longest_period(whole, total))
    shares = np.array([weight / total for weight in whole])
    best, period = math.inf, 0
    many = max(1, _AT_ONCE // len(whole))
    for begin in range(1, MAX_PERIOD + 1, many):
        periods = np.arange(begin, min(begin + many, MAX_PERIOD + 1))
        exact = np.outer(periods, shares)
        parts = np.rint(exact)
        errors = np.maximum(np.abs(parts - exact).max(axis=1) / periods, _ROUNDING)
        errors[(parts.sum(axis=1) != periods) | ((parts == 0) & (shares > 0)).any(axis=1)] = (
            math.inf
        )
        least = int(errors.argmin())
        if errors[least] < best:
            best, period = float(errors[least]), int(periods[least])
    if period:
        return _without_divisor([round(share * period) for share in shares.tolist()])
    return _without_divisor(_in_longest_period(whole, total))


def _in_longest_period(whole: list[int], total: int) -> list[int]:
    """Rounds by largest remainders, but no small weight becomes 0."""
    parts = [max(weight * MAX_PERIOD // total, weight > 0) for weight in whole]
    by_remainder = sorted(range(len(whole)), key=lambda i: -(whole[i] * MAX_PERIOD % total))
    for i in by_remainder[: max(MAX_PERIOD - sum(parts), 0)]:
        parts[i] += 1
    while sum(parts) > MAX_PERIOD:
        parts[parts.index(max(parts))] -= 1
    return parts
