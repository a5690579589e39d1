"""The features that a Loader decodes, inferred from a sample of its records where needed."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

from tfrfast.errors import RecordError
from tfrfast.features import AnyFeatures
from tfrfast.features.compiled import CompiledFeatures
from tfrfast.features.compiling import compile_features
from tfrfast.features.inference import RECORDS_TO_INFER, settle, survey_all
from tfrfast.features.names import check_names
from tfrfast.features.sources import Sample
from tfrfast.order import Order
from tfrfast.reader import Reader

__all__ = ["is_all", "planned_features", "planned_sample"]

_PLACES = 8  # places whose first records show the length of records
_MAX_SAMPLE_BYTES = 64 << 20


def planned_features(
    features: AnyFeatures | None,
    reader: Reader,
    order: Order,
    sample: int | None = RECORDS_TO_INFER,
    threads: int | None = None,
) -> CompiledFeatures | None:
    """Returns the features that a Loader decodes, the same on every rank. They fit a sample of its
    order's records, or with `sample=None` all records of the reader.
    """
    if features is None:
        return None

    def look(count: int) -> Sample:
        return planned_sample(reader, order, count)

    if sample is None:
        settled = settle(features, look, lambda: survey_all(reader._core, threads))
    else:
        settled = settle(features, lambda _: look(sample))
    compiled = compile_features(reader._fitted(settled))
    if isinstance(features, Mapping):
        check_names(compiled, look)
    return compiled


def is_all(reader: Reader, sample: int | None) -> bool:
    """True if a sample of this size has all records of the reader."""
    size = sum(shard.num_bytes for shard in reader.shards)
    return sample is None or (len(reader) <= sample and size <= _MAX_SAMPLE_BYTES)


def planned_sample(reader: Reader, order: Order, count: int) -> Sample:
    """Returns readable records from a few places of the order, which cost few seeks."""
    if count > _PLACES:
        first = _read(reader, order._sample(len(reader), _PLACES))
        mean = sum(map(len, first.records)) // max(len(first.records), 1)
        count = max(_PLACES, min(count, _MAX_SAMPLE_BYTES // max(mean, 1)))
    return _read(reader, order._sample(len(reader), count))


def _read(reader: Reader, numbers: list[int]) -> Sample:
    """Returns the readable records. A damaged record is an error at its place in the epoch, not
    here.
    """
    try:
        batch = reader.read(numbers)
        return Sample(batch.tolist(), batch.indices.tolist(), reader._core)
    except (RecordError, OSError):
        records, readable = [], []
        for number in numbers:
            with contextlib.suppress(RecordError, OSError):
                records.append(reader[number])
                readable.append(number)
        return Sample(records, readable, reader._core)
