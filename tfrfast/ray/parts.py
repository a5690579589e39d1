"""The part of a Ray task: its records and the options of reading. Pickled; needs no Ray."""

from __future__ import annotations

import pickle
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tfrfast import _native
from tfrfast.base.arguments import Int64Array
from tfrfast.errors import StaleIndexError
from tfrfast.ray.blocks import blocks
from tfrfast.reader import Reader
from tfrfast.tables import scanning

__all__ = ["Columns", "OrderRange", "PlannedReader", "PlannedShards"]


@dataclass(frozen=True)
class PlannedShards:
    """Shards as they were when the work was planned."""

    #: Equal for all parts of a plan, so that a process opens the same shards once.
    plan: str
    paths: list[str]
    options: dict[str, Any]
    num_records: list[int]
    num_bytes: list[int]

    def open(self, threads: int) -> Reader:
        """Returns a reader of these shards. Raises StaleIndexError if the shards have changed since
        the plan.
        """
        reader = Reader(self.paths, **{**self.options, "threads": threads, "progress": False})
        if len(reader.shards) != len(self.paths):  # a name with brackets is a pattern here
            raise StaleIndexError(
                f"{len(self.paths)} shards were planned, {self.paths[0]!r} among them, and this "
                f"node finds {len(reader.shards)}. Let all nodes see the same files."
            )
        facts = zip(reader.shards, self.num_records, self.num_bytes, strict=True)
        for shard, records, size in facts:
            if (shard.num_records, shard.num_bytes) != (records, size):
                raise StaleIndexError(
                    f"{shard.path}: there are {shard.num_records} records in {shard.num_bytes} "
                    f"bytes, but {records} in {size} when the work was planned. Was it written "
                    "meanwhile, or is it another file on this node? Plan the work again once all "
                    "nodes see the same files.",
                    path=shard.path,
                )
        return reader


@dataclass(frozen=True)
class PlannedReader:
    """A reader whose records are made from parts, such as Steps, as it was when the work was
    planned.
    """

    plan: str
    paths: list[str]
    pickled: bytes = field(repr=False)
    fingerprint: int

    def open(self, threads: int) -> Reader:
        """Returns the same reader. Raises StaleIndexError if its records have changed since the
        plan.
        """
        reader: Reader = pickle.loads(self.pickled)
        if reader._fingerprint != self.fingerprint:
            raise StaleIndexError(
                f"{self.paths[0]!r}, or another shard, has changed since the work was "
                "planned. Plan the work again once all nodes see the same files.",
                path=self.paths[0],
            )
        return reader


@dataclass(frozen=True)
class Columns:
    """The arguments of a scan."""

    features: Mapping[str, Any]
    names: list[str]
    batch_size: int
    record: bool | str = False
    shard: bool | str = False
    text: tuple[str, ...] = ()

    def scan(self, reader: Reader, records: Any, threads: int) -> scanning.Scan:
        return scanning.scan(
            reader,
            features=self.features,
            columns=self.names,
            records=records,
            batch_size=self.batch_size,
            record_column=self.record,
            shard_column=self.shard,
            text=[name for name in self.text if name in self.names],
            tensors=True,
            threads=threads,
        )

    @property
    def record_column(self) -> str | None:
        """The column of record numbers, if any."""
        name = "record" if self.record is True else self.record or None
        return name if name in self.names else None

    def schema(self, reader: Reader) -> Any:
        """PyArrow's schema of the tables."""
        import pyarrow as pa

        kinds = pa.schema(self.scan(reader, slice(0), 1))
        nothing = [pa.array([], getattr(kind.type, "storage_type", kind.type)) for kind in kinds]
        columns = [
            pa.ExtensionArray.from_storage(kind.type, column)
            if hasattr(kind.type, "storage_type")
            else column
            for kind, column in zip(kinds, nothing, strict=True)
        ]
        rows = pa.RecordBatch.from_arrays(columns, schema=kinds)
        return next(blocks(rows, self.features)).schema

    def tables(self, scan: scanning.Scan) -> Iterator[Any]:
        for batch in scan:
            yield from blocks(batch, self.features)


@dataclass(frozen=True)
class OrderRange:
    """Records `first` to `last` (excluded) of an order: the shards' order, or another."""

    shards: Any  # PlannedShards or a PlannedReader, or an argument of `get_shards`
    columns: Columns
    first: int
    last: int
    #: The number of the first record of `shards`.
    first_of_shards: int = 0
    #: The record numbers at these positions, if the order is not the files' order.
    records: Int64Array | None = field(default=None, repr=False)
    #: Instead of `records`: an encoded plan, and the epoch.
    planned: tuple[bytes, int] | None = field(default=None, repr=False)

    def read(
        self, get_shards: Callable[[Any], PlannedShards | PlannedReader], threads: int
    ) -> Iterator[Any]:
        """Yields the part's rows as PyArrow tables of some MiB each."""
        reader = _open(get_shards, self.shards, threads)
        scan = self.columns.scan(reader, self._numbers(), threads)
        for table in self.columns.tables(scan):
            yield self._numbered(table)

    def _numbers(self) -> Any:
        if self.records is not None:
            return self.records
        if self.planned is not None:
            plan, epoch = self.planned
            return _native.Plan.decode(plan).records_at(epoch, self.first, self.last)
        return slice(self.first - self.first_of_shards, self.last - self.first_of_shards)

    def _numbered(self, table: Any) -> Any:
        """Returns the table with the records' numbers in the whole data set."""
        name = self.columns.record_column
        if name is None or not self.first_of_shards:
            return table
        import pyarrow as pa

        column = table.column(name).to_numpy() + np.int64(self.first_of_shards)
        return table.set_column(table.schema.get_field_index(name), name, pa.array(column))


_KEPT_READERS = 2
_readers: OrderedDict[tuple[str, str, int], Reader] = OrderedDict()
_lock = threading.Lock()


def _open(
    get_shards: Callable[[Any], PlannedShards | PlannedReader], given: Any, threads: int
) -> Reader:
    """Returns a reader for this part, which later parts of the same plan share in this process."""
    shards = get_shards(given)
    key = (shards.plan, "\0".join(shards.paths), threads)
    with _lock:
        if (reader := _readers.get(key)) is None:
            reader = _readers[key] = shards.open(threads)
        _readers.move_to_end(key)
        while len(_readers) > _KEPT_READERS:
            _readers.popitem(last=False)
    return reader
