"""Some records of many, from which to learn what all may hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

__all__ = ["Look", "Sample"]


class Sample(NamedTuple):
    """Some records, and their numbers for error messages."""

    records: Sequence[bytes]
    numbers: Sequence[int]


# Returns about as many records as it is asked for.
Look = Callable[[int], Sample]
