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
_ROUND = 720_720  # divisible by 1 to 16, so that simple ratios stay simple


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
    close = dict(zip(weights, _close(whole), strict=True))
    raise ValueError(
        f"These weights have a period of {sum(whole):,} records, and at most {MAX_PERIOD:,} are "
        f"allowed: weights are kept exactly in every period. Close weights that fit are {close}."
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


def _close(whole: list[int]) -> list[int]:
    """Returns close weights with a short period. No weight becomes 0."""
    total = sum(whole)
    return _without_divisor([max(round(each * _ROUND / total), int(each > 0)) for each in whole])
