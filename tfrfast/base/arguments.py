"""Checks of arguments for several classes. Messages name the given and the allowed values."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Literal, SupportsIndex, cast

import numpy as np
import numpy.typing as npt

Int64Array = npt.NDArray[np.int64]
IntegerArrayLike = npt.NDArray[np.integer[Any]] | Sequence[int]
Remainder = Literal["keep", "drop", "pad"]
#: A maximum that no message names.
UNLIMITED = 2**63 - 1
_MOST_THREADS = 1 << 16


def integer(name: str, value: SupportsIndex, minimum: int, maximum: int) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, not {type(value).__name__}.") from None
    if number < minimum and maximum == UNLIMITED:
        raise ValueError(f"{name} is {number:,}, but must be at least {minimum:,}.")
    if not minimum <= number <= maximum:
        raise ValueError(f"{name} is {number}, but must be from {minimum} to {maximum}.")
    return number


def checked_threads(threads: SupportsIndex | None) -> int | None:
    """Checks a requested number of threads, or None."""
    return None if threads is None else integer("threads", threads, 1, _MOST_THREADS)


def check_transform(transform: object, what: str) -> None:
    if transform is not None and not callable(transform):
        raise TypeError(f"transform is a function of {what}, not {type(transform).__name__}.")


def seed_number(seed: SupportsIndex) -> int:
    return integer("seed", seed, -(2**63), 2**64 - 1) % 2**64


def epoch_number(epoch: SupportsIndex) -> int:
    return integer("epoch", epoch, 0, 2**64 - 1)


def no_such(what: str, number: int, count: int) -> IndexError:
    """Returns the error for a number that does not exist, counted from either end."""
    return IndexError(f"{what} {number} does not exist: there are {count} {what.lower()}s.")


def as_number(what: str, value: object) -> int | None:
    """`value` as an int, or None if it may be an array."""
    if isinstance(value, np.ndarray):
        return None  # even without dimensions: as in NumPy, the result has the array's shape
    try:
        return operator.index(cast("SupportsIndex", value))
    except TypeError:
        pass
    if isinstance(value, float | str | bytes | None | np.floating):
        raise TypeError(f"{what} must be an integer or an array of integers, not {value!r}.")
    return None


def integers(name: str, values: object, too_large: type[Exception] = IndexError) -> Int64Array:
    array = np.asarray(values)
    if array.size == 0 and not isinstance(values, np.ndarray):
        return np.empty(array.shape, np.int64)  # an empty list has no type
    if array.dtype == np.bool_:
        raise TypeError(f"{name} must be integers, not a mask; use numpy.flatnonzero(mask).")
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} must be integers, not {array.dtype}.")
    if array.dtype == np.uint64 and array.size and int(array.max()) > np.iinfo(np.int64).max:
        raise too_large(f"{name} hold {int(array.max())}, more than any record number.")
    return array.astype(np.int64, copy=False)
