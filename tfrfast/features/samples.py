"""A sample of records, for inference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tfrfast import _native

__all__ = ["Look", "Sample"]


class Sample(NamedTuple):
    """Some records, and their numbers and their reader, if they have one, for error messages."""

    records: Sequence[bytes]
    numbers: Sequence[int]
    reader: _native.Reader | None = None


# Returns about the requested number of records.
Look = Callable[[int], Sample]
