"""Samples of records: from all over a plan, at the cost of few seeks."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from tfrfast.errors import RecordError
from tfrfast.plan import Plan
from tfrfast.reader import Reader

__all__ = ["Look", "Sample", "planned_sample"]

_PLACES = 8  # in the data set, from which the sample is taken
_MAX_SAMPLE_BYTES = 64 << 20


class Sample(NamedTuple):
    """Some records, and their numbers for error messages."""

    records: Sequence[bytes]
    numbers: Sequence[int]


# Returns about as many records as it is asked for.
Look = Callable[[int], Sample]


def planned_sample(reader: Reader, plan: Plan, count: int) -> Sample:
    """Readable records of the plan, from a few places only, so that they cost few seeks."""
    if count > _PLACES:
        first = _read(reader, _planned_numbers(plan, _PLACES))
        mean = sum(map(len, first.records)) // max(len(first.records), 1)
        count = max(_PLACES, min(count, _MAX_SAMPLE_BYTES // max(mean, 1)))
    return _read(reader, _planned_numbers(plan, count))


def _planned_numbers(plan: Plan, count: int) -> list[int]:
    positions = np.arange(plan.positions) if plan.positions <= count else None
    if positions is None:
        places = min(_PLACES, count)
        run = count // places
        starts = np.linspace(0, plan.positions - run, places).astype(np.int64)
        positions = (starts[:, None] + np.arange(run)).reshape(-1)
    numbers: list[int] = (positions if plan._chosen is None else plan._chosen[positions]).tolist()
    return numbers


def _read(reader: Reader, numbers: list[int]) -> Sample:
    """The readable records. A damaged one is an error at its place in the epoch, not here."""
    try:
        batch = reader.read(numbers)
        return Sample(batch.tolist(), batch.indices.tolist())
    except (RecordError, OSError):
        records, readable = [], []
        for number in numbers:
            with contextlib.suppress(RecordError, OSError):
                records.append(reader[number])
                readable.append(number)
        return Sample(records, readable)
