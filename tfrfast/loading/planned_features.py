"""What a Loader decodes, if it was not told in full: that depends on a sample of its records."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

from tfrfast.errors import RecordError
from tfrfast.features import AnyFeatures
from tfrfast.features.compiled import CompiledFeatures
from tfrfast.features.compiling import compile_features
from tfrfast.features.inference import settle
from tfrfast.features.names import check_names
from tfrfast.features.samples import Sample
from tfrfast.order import Order
from tfrfast.reader import Reader

__all__ = ["planned_features"]

_PLACES = 8  # records that tell how long they are
_MAX_SAMPLE_BYTES = 64 << 20


def planned_features(
    features: AnyFeatures | None, reader: Reader, order: Order, sample: int | None = None
) -> CompiledFeatures | None:
    """What a Loader decodes, the same on every rank. It fits a sample of its order's records.

    `sample` is from how many records to infer features, if that is not the usual number.
    """
    if features is None:
        return None

    def look(count: int) -> Sample:
        return _planned_sample(reader, order, count)

    def look_at_sample(count: int) -> Sample:
        return look(count if sample is None else sample)

    compiled = compile_features(settle(features, look_at_sample))
    if isinstance(features, Mapping):
        check_names(compiled, look, stacklevel=4)
    return compiled


def _planned_sample(reader: Reader, order: Order, count: int) -> Sample:
    """Readable records of the order, from a few places only, so that they cost few seeks."""
    if count > _PLACES:
        first = _read(reader, order._sample(len(reader), _PLACES))
        mean = sum(map(len, first.records)) // max(len(first.records), 1)
        count = max(_PLACES, min(count, _MAX_SAMPLE_BYTES // max(mean, 1)))
    return _read(reader, order._sample(len(reader), count))


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
