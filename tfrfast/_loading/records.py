"""Records by number, decoded into columns, for adapters that choose the numbers themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tfrfast import _native
from tfrfast._base.arguments import Int64Array
from tfrfast._base.paths import Paths
from tfrfast._columns.batch import Batch
from tfrfast._loading.planned_features import planned_features
from tfrfast.example import parse_example
from tfrfast.features import AnyFeatures, Features
from tfrfast.mixture import Mixture
from tfrfast.plan import Plan
from tfrfast.reader import Reader

__all__ = ["Records", "open_reader", "planned_from", "read_rows"]


def open_reader(source: Reader | Mixture | Paths, options: dict[str, Any]) -> Reader:
    if isinstance(source, Mixture):
        source = source.reader
    if not isinstance(source, Reader):
        return Reader(source, **options)
    if options:
        raise TypeError(
            f"{', '.join(options)}: options of a Reader, which `source` already is. "
            "Give them to it."
        )
    return source


def planned_from(source: object, reader: Reader) -> Mixture | int:
    """What a Plan takes for a source that `reader` reads."""
    return source if isinstance(source, Mixture) else len(reader)


class Records:
    """Reads and decodes records. It pickles as its reader's arguments and its features."""

    def __init__(
        self,
        source: Reader | Mixture | Paths,
        features: AnyFeatures | None,
        options: dict[str, Any],
    ) -> None:
        self.reader = open_reader(source, options)
        # Settled here, once, so that every batch and every process has the same columns.
        if isinstance(source, Mixture):
            plan = Plan(source, 1)
        else:
            plan = Plan(len(self.reader), 1, shuffle=False)
        compiled = planned_features(features, self.reader, plan)
        self.features: Features | None = None if compiled is None else compiled.specs

    def read(
        self, numbers: Int64Array, valid: npt.NDArray[np.bool_] | None = None
    ) -> _native.RecordBatch | Batch:
        """The records with these numbers; a RecordBatch if they are not decoded.

        Damaged ones are missing if the reader leaves them out.
        """
        return read_rows(self.reader, self.features, numbers, valid)


def read_rows(
    reader: Reader,
    features: Features | None,
    numbers: Int64Array,
    valid: npt.NDArray[np.bool_] | None = None,
) -> _native.RecordBatch | Batch:
    """What a Loader of these features delivers for the rows that `Plan.rows` names."""
    records = reader.read(numbers)
    if valid is not None and not valid.all():
        # Padding comes after what is real, of which a part may have been left out.
        real = len(reader.read(numbers[valid]))
        valid = np.arange(len(records)) < real
        parts = records.data, records.offsets, records.indices, valid, records.source_starts
        records = _native.RecordBatch(*parts)
    return records if features is None else parse_example(records, features)
