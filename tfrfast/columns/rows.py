"""Rows chosen as in NumPy: by a slice, a mask, or their numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tfrfast.base.arguments import no_such

__all__ = ["Rows", "is_number", "row_numbers"]

Rows = slice | Sequence[int] | Sequence[bool] | npt.NDArray[np.integer[Any]] | npt.NDArray[np.bool_]


def is_number(index: object) -> bool:
    """True if `index` is an integer of any kind, or an array without dimensions. A bool is not."""
    if isinstance(index, (bool, np.bool_)) or getattr(index, "ndim", None):
        return False
    return hasattr(index, "__index__")


def row_numbers(rows: Any, count: int, what: str = "Row") -> npt.NDArray[np.int64]:
    """Returns the non-negative numbers of `rows`. Raises IndexError if a row does not exist.

    Messages call a row `what`.
    """
    if isinstance(rows, slice):
        return np.arange(*rows.indices(count), dtype=np.int64)
    chosen = np.asarray(rows)
    if chosen.shape == (0,) and chosen.dtype.kind == "f":
        chosen = chosen.astype(np.int64)  # NumPy turns an empty list into floats
    if isinstance(rows, tuple) or chosen.ndim != 1 or chosen.dtype.kind not in "biu":
        raise TypeError(
            f"{what}s are named by a slice, a mask or a list of their numbers, not by "
            f"{type(rows).__name__} of {chosen.dtype} with {chosen.ndim} dimensions."
        )
    if chosen.dtype.kind == "b":
        if len(chosen) != count:
            raise IndexError(
                f"The mask has {len(chosen)} entries, but there are {count} {what.lower()}s."
            )
        return np.flatnonzero(chosen)
    outside = np.flatnonzero((chosen >= count) | (chosen < -count))
    if len(outside):
        raise no_such(what, int(chosen[outside[0]]), count)
    numbers = chosen.astype(np.int64)
    numbers[numbers < 0] += count
    return numbers
