"""A sample of records, for inference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

__all__ = ["Look", "Sample"]


class Sample(NamedTuple):
    """Some records, and their numbers for error messages."""

    records: Sequence[bytes]
    numbers: Sequence[int]


# Returns about the requested number of records.
Look = Callable[[int], Sample]
