"""What a Loader decodes, if it was not told in full: that depends on a sample of its records."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

import numpy as np

from tfrfast._features.compiled import CompiledFeatures
from tfrfast._features.compiling import compile_features
from tfrfast._features.inference import settle
from tfrfast._features.names import check_names
from tfrfast._features.samples import Sample
from tfrfast.errors import RecordError
from tfrfast.features import AnyFeatures
from tfrfast.plan import Plan
from tfrfast.reader import Reader

__all__ = ["planned_features"]

_PLACES = 8  # in the data set, from which the sample is taken
_MAX_SAMPLE_BYTES = 64 << 20


def planned_features(
    features: AnyFeatures | None, reader: Reader, plan: Plan, sample: int | None = None
) -> CompiledFeatures | None:
    """What a Loader decodes, the same on every rank. It fits a sample of its plan's records.

    `sample` is from how many records to infer features, if that is not the usual number.
    """
    if features is None:
        return None

    def look(count: int) -> Sample:
        return _planned_sample(reader, plan, count)

    def look_at_sample(count: int) -> Sample:
        return look(count if sample is None else sample)

    compiled = compile_features(settle(features, look_at_sample))
    if isinstance(features, Mapping):
        check_names(compiled, look, stacklevel=4)
    return compiled


def _planned_sample(reader: Reader, plan: Plan, count: int) -> Sample:
    """Readable records of the plan, from a few places only, so that they cost few seeks."""
    if count > _PLACES:
        first = _read(reader, _planned_numbers(plan, _PLACES))
        mean = sum(map(len, first.records)) // max(len(first.records), 1)
        count = max(_PLACES, min(count, _MAX_SAMPLE_BYTES // max(mean, 1)))
    return _read(reader, _planned_numbers(plan, count))


def _planned_numbers(plan: Plan, count: int) -> list[int]:
    if plan._own_order is not None:
        return plan._own_order.sample(count)
    positions = np.arange(plan.positions) if plan.positions <= count else None
    if positions is None:
        places = min(_PLACES, count)
        run = count // places
        starts = np.linspace(0, plan.positions - run, places).astype(np.int64)
        positions = (starts[:, None] + np.arange(run)).reshape(-1)
    if plan._weights is not None:  # a position is a draw: look at records that may be drawn
        weighted = np.flatnonzero(plan._weights)
        positions = weighted[positions * len(weighted) // max(plan.positions, 1)]
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
