"""Weights of single records as whole numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tfrfast._base.arguments import Int64Array

__all__ = ["whole_weights"]

_MAX_SUM = 2**62


def whole_weights(weights: Any, num_records: int) -> Int64Array:
    """Integers as they are. Floats times a power of two, so that their sum has 60 bits or more.

    The result is the same on every machine.
    """
    array = np.asarray(weights)
    if array.size == 0 and array.dtype == np.float64:
        array = array.astype(np.int64)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"weights must be numbers, not {array.dtype}.")
    if array.shape != (num_records,):
        raise ValueError(
            f"weights has shape {array.shape}, but must have one weight for each of the "
            f"{num_records} records."
        )
    bad = ~np.isfinite(array) | (array < 0)
    if bad.any():
        number = int(bad.argmax())
        raise ValueError(
            f"weights[{number}] is {array[number]}, but must be a finite number of 0 or more."
        )
    array = np.ascontiguousarray(array)
    if array.dtype.kind == "f":
        exact = array.astype(np.float64)
        _, exponent = math.frexp(exact.max(initial=0))
        exact = np.ldexp(exact, -exponent)  # below 1, so that no sum is infinite
        # math.fsum is exact, so the scale does not depend on how the sum is taken.
        _, exponent = math.frexp(math.fsum(exact.data))
        return np.ldexp(exact, 61 - exponent).astype(np.int64)
    if int(array.max(initial=0)) * len(array) > _MAX_SUM and sum(array.data) > _MAX_SUM:
        raise ValueError("The sum of integer weights must be at most 2**62. Give floats instead.")
    return array.astype(np.int64)
