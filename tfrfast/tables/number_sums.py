"""Means and deviations from exact sums, which do not depend on the order of addition."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tfrfast.errors import FeatureError

__all__ = ["NumberSums", "as_int64", "sums_of"]


class NumberSums(NamedTuple):
    """Sums over numbers. NaN is counted, and left out of all else. Infinities are not added."""

    values: int
    nan: int
    infinite: int
    minus_infinite: int
    #: In units of 2**-unit_bits.
    sum: int
    #: In units of 2**(-2 * unit_bits).
    squares: int
    min: float
    max: float
    unit_bits: int

    @property
    def numbers(self) -> int:
        return self.values - self.nan

    @property
    def mean(self) -> float:
        if not self.numbers or (self.infinite and self.minus_infinite):
            return math.nan
        if self.infinite or self.minus_infinite:
            return math.inf if self.infinite else -math.inf
        return float(Fraction(self.sum, self.numbers << self.unit_bits))

    @property
    def std(self) -> float:
        """The square root of the mean square of the distances from the mean."""
        if not self.numbers or self.infinite or self.minus_infinite:
            return math.nan
        square = self.numbers * self.squares - self.sum * self.sum
        return math.sqrt(Fraction(square, self.numbers**2 << 2 * self.unit_bits))

    def plus(self, other: NumberSums) -> NumberSums:
        """Returns the sums over the numbers of both."""
        a, b = (self, other) if self.numbers else (other, self)
        return NumberSums(
            a.values + b.values,
            a.nan + b.nan,
            a.infinite + b.infinite,
            a.minus_infinite + b.minus_infinite,
            a.sum + b.sum,
            a.squares + b.squares,
            min(a.min, b.min) if b.numbers else a.min,
            max(a.max, b.max) if b.numbers else a.max,
            self.unit_bits,
        )


def sums_of(facts: tuple[int, int, int, int, bytes, bytes, float, float], kind: str) -> NumberSums:
    """Returns the core's sums over numbers of the type "int64" or "float32"."""
    values, nan, infinite, minus_infinite, total, squares, low, high = facts
    return NumberSums(
        values,
        nan,
        infinite,
        minus_infinite,
        int.from_bytes(total, "little", signed=True),
        int.from_bytes(squares, "little", signed=True),
        low,
        high,
        149 if kind == "float32" else 0,
    )


def as_int64(name: str, values: NDArray[Any]) -> NDArray[np.int64]:
    """Returns a feature's integers, of which statistics are those of int64."""
    if values.dtype == np.uint64 and values.max(initial=0) >> np.uint64(63):
        raise FeatureError(
            f"Feature {name!r} has values beyond int64, of which there are no statistics. Ask for "
            "other columns."
        )
    return values.astype(np.int64, copy=False)
