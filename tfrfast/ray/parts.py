"""The part of a Ray task: its records and the options of reading. Pickled; needs no Ray."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tfrfast import _native
from tfrfast.base.arguments import Int64Array
from tfrfast.jobs.chosen_records import ChosenRecords
from tfrfast.ray.blocks import blocks
from tfrfast.tables.columns import ScanColumns
from tfrfast.tables.scanning import Scan

__all__ = ["ReadPart", "schema_of", "tables_of"]


def schema_of(scan: Scan) -> Any:
    """Returns PyArrow's schema of the tables."""
    import pyarrow as pa

    kinds = pa.schema(scan)
    nothing = [pa.array([], getattr(kind.type, "storage_type", kind.type)) for kind in kinds]
    columns = [
        pa.ExtensionArray.from_storage(kind.type, column)
        if hasattr(kind.type, "storage_type")
        else column
        for kind, column in zip(kinds, nothing, strict=True)
    ]
    rows = pa.RecordBatch.from_arrays(columns, schema=kinds)
    return next(blocks(rows, scan.features)).schema


def tables_of(scan: Scan) -> Iterator[Any]:
    """Yields the rows as PyArrow tables of some MiB each."""
    for batch in scan:
        yield from blocks(batch, scan.features)


@dataclass(frozen=True)
class ReadPart:
    """Records in the shards' order or, with `chosen`, some of them in another order."""

    #: Pickled ChosenRecords, or a reference to them in Ray's object store.
    rows: Any
    #: The numbers of the records or, with `chosen`, positions of the order.
    places: range
    batch_size: int
    features: Mapping[str, Any]
    columns: ScanColumns
    #: The numbers of the records at these positions, or an encoded plan with an epoch.
    chosen: Int64Array | tuple[bytes, int] | None = field(default=None, repr=False)

    def read(self, pickled: bytes, threads: int) -> Iterator[Any]:
        """Yields the part's rows as PyArrow tables."""
        rows: ChosenRecords = pickle.loads(pickled)
        assert isinstance(rows.numbers, range)
        if self.chosen is None:
            numbers: Int64Array = np.arange(rows.numbers.start, rows.numbers.stop)
        elif isinstance(self.chosen, tuple):
            plan, epoch = self.chosen
            decoded = _native.Plan.decode(plan)
            numbers = decoded.records_at(epoch, self.places.start, self.places.stop)
        else:
            numbers = self.chosen
        size, features, columns = self.batch_size, self.features, self.columns
        for table in tables_of(Scan(rows.reader, numbers, size, features, columns, threads)):
            yield self._numbered(table, rows.base)

    def _numbered(self, table: Any, base: int) -> Any:
        """Returns the table with the records' numbers in the whole data set."""
        contents = self.columns.contents.items()
        for name in [name for name, (_, what) in contents if what == "record"] if base else ():
            import pyarrow as pa

            column = table.column(name).to_numpy() + np.int64(base)
            table = table.set_column(table.schema.get_field_index(name), name, pa.array(column))
        return table
