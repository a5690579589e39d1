"""Records as a source for Ray Data, which reads in tasks of its own."""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
import math
import pickle
import uuid
from collections.abc import Iterator
from typing import Any

import numpy as np
import ray
from ray.data import Datasource, ReadTask
from ray.data.block import BlockMetadata

from tfrfast.errors import RecordError
from tfrfast.order import Plan
from tfrfast.ray.parts import Columns, OrderRange, PlannedReader, PlannedShards
from tfrfast.ray.ranges import ShardTable, cut
from tfrfast.ray.tasks import processors_of_task
from tfrfast.reader import Reader
from tfrfast.storage.paths import absolute, absolute_path

__all__ = ["RecordSource"]

_SAMPLE_BYTES = 1 << 20
_SAMPLE_ROWS = 512
_TASK_BYTES = 64 << 20
_SMALL_BYTES = 1 << 20
_TASKS_PER_PROCESSOR = 4
_SMALL_ORDER_BYTES = 1000
# A longer list of paths goes into Ray's object store once, not into each task.
_MAX_PATHS_IN_A_TASK = 200


class RecordSource(Datasource):
    """The records of a reader, in ranges of about the same number of bytes.

    With `order`, the records of an epoch of that plan.
    """

    def __init__(
        self,
        reader: Reader,
        columns: Columns,
        order: Plan | None,
        epoch: int,
    ) -> None:
        super().__init__()
        self._reader = reader
        self._columns = columns
        self._order = order
        self._epoch = epoch
        self._plan = uuid.uuid4().hex
        counts = [shard.num_records for shard in reader.shards]
        sizes = [shard.num_bytes for shard in reader.shards]
        if reader._makes_records:  # from parts that lie anywhere
            counts, sizes = [len(reader)], [sum(sizes)]
        self._table = ShardTable(np.array(counts, np.int64), np.array(sizes, np.int64))
        self._options = dict(reader._options)
        if self._options["index_folder"] is not None:
            self._options["index_folder"] = absolute_path(self._options["index_folder"])
        self._put: Any = None
        self._measure()

    def get_name(self) -> str:
        """The name of the reading in Ray's progress and statistics."""
        return "TFRecords"

    def __len__(self) -> int:
        return len(self._reader) if self._order is None else self._order.positions

    # -- sizes

    def _measure(self) -> None:
        """Measures the schema, and the bytes of a row, from the first rows."""
        rows = min(_SAMPLE_ROWS, self._reader._records_within(_SAMPLE_BYTES), len(self._reader))
        self._schema = self._columns.schema(self._reader)
        stored = int(self._table.num_bytes.sum()) / max(len(self._reader), 1)
        try:
            some = list(self._columns.tables(self._columns.scan(self._reader, slice(rows), 1)))
        except RecordError:
            some = []  # reading these records will raise the error
        seen = sum(table.num_rows for table in some)
        self._row_bytes = sum(table.nbytes for table in some) / seen if seen else stored

    def estimate_inmemory_data_size(self) -> int:
        """The bytes of all blocks together, estimated from the first rows."""
        return math.ceil(self._row_bytes * len(self))

    def usual_tasks(self) -> int:
        """Returns the default number of tasks: a few for each processor, and none too large.

        Ray's own choice is 200 tasks for any data of 200 MiB. A task costs Ray some 15 ms.
        """
        processors = math.ceil(ray.cluster_resources().get("CPU", 1))
        size = self.estimate_inmemory_data_size()
        return max(
            1, -(-size // _TASK_BYTES), min(_TASKS_PER_PROCESSOR * processors, size // _SMALL_BYTES)
        )

    # -- columns

    def supports_projection_pushdown(self) -> bool:
        """True if this version of Ray hands `select_columns` down in the expected way."""
        return hasattr(Datasource, "get_projection_map")

    def get_projection_map(self) -> dict[str, str] | None:
        """All remaining columns are read, so nothing remains to be projected."""
        return None

    def apply_projection(self, projection_map: dict[str, str] | None) -> RecordSource:
        """Returns the same records with only these columns."""
        if not projection_map:  # rows without columns would not keep their number
            return self
        names = list(projection_map)
        if unknown := [name for name in names if name not in self._columns.names]:
            known = ", ".join(map(repr, self._columns.names))
            raise ValueError(f"There is no column {unknown[0]!r}. There are {known}.")
        some = copy.copy(self)
        some._columns = dataclasses.replace(self._columns, names=names)
        some._measure()
        return some

    # -- tasks

    def get_read_tasks(
        self, parallelism: int, per_task_row_limit: int | None = None, **_: Any
    ) -> list[ReadTask]:
        """Returns a task for each range. Other versions of Ray pass other keywords."""
        return [self._task(part, per_task_row_limit) for part in self.parts(parallelism)]

    def parts(self, count: int) -> Iterator[OrderRange]:
        """Returns at most `count` ranges."""
        columns = self._columns
        order = self._order
        if order is None:
            ends = self._table.ends
            for first, last in cut(self._table, count):
                touched = self._table.touched(first, last)
                begin = int(ends[touched[0]] - self._table.num_records[touched[0]])
                yield OrderRange(self._shards(touched), columns, first, last, begin)
            return
        total = len(self)
        count = min(count, total)
        everything = self._everything() if total else None
        # The order travels to the tasks, unless their record numbers are smaller.
        encoded = order._encode()
        travels = len(encoded) <= max(_SMALL_ORDER_BYTES, 8 * total // max(count, 1))
        for i in range(count):
            first, last = total * i // count, total * (i + 1) // count
            part = OrderRange(everything, columns, first, last)
            if travels:
                yield dataclasses.replace(part, planned=(encoded, self._epoch))
            else:
                numbers = order.records_at(self._epoch, first, last)
                yield dataclasses.replace(part, records=numbers)

    @functools.cached_property
    def _planned_reader(self) -> PlannedReader:
        reader = self._reader
        pickled = pickle.dumps(reader)
        return PlannedReader(self._plan, absolute(reader._paths), pickled, reader._fingerprint)

    def _shards(self, which: range) -> PlannedShards | PlannedReader:
        if self._reader._makes_records:
            return self._planned_reader
        paths = self._reader._paths
        return PlannedShards(
            self._plan,
            absolute([paths[i] for i in which]),
            self._options,
            [int(self._table.num_records[i]) for i in which],
            [int(self._table.num_bytes[i]) for i in which],
        )

    def _everything(self) -> Any:
        """All shards, for tasks that may need any shard. A long list is in Ray's object store."""
        everything = self._shards(range(len(self._table.num_records)))
        if len(everything.paths) <= _MAX_PATHS_IN_A_TASK:
            return everything
        if self._put is None:
            self._put = ray.put(everything)
        return self._put

    def _task(self, part: OrderRange, limit: int | None) -> ReadTask:
        # Skipped damaged records make fewer rows than planned.
        rows = None if self._reader._skips_damage else part.last - part.first
        metadata = {
            "num_rows": rows,
            "size_bytes": math.ceil(self._row_bytes * (part.last - part.first)),
            "input_files": part.shards.paths if part.first_of_shards or _is_range(part) else None,
            "exec_stats": None,
            "schema": self._schema,
        }
        options = {"schema": self._schema, "per_task_row_limit": limit}
        return ReadTask(
            functools.partial(_read, part),
            _made(BlockMetadata, metadata),
            **{key: options[key] for key in options if key in _parameters(ReadTask)},
        )


def _is_range(part: OrderRange) -> bool:
    return part.records is None and part.planned is None


def _read(part: OrderRange) -> Iterator[Any]:
    return part.read(_shards_of, processors_of_task())


def _shards_of(given: Any) -> PlannedShards | PlannedReader:
    shards: PlannedShards | PlannedReader = (
        ray.get(given) if isinstance(given, ray.ObjectRef) else given
    )
    return shards


def _made(kind: Any, values: dict[str, Any]) -> Any:
    """Makes a dataclass of Ray's, whose fields differ between versions."""
    return kind(**{key: values[key] for key in values if key in _parameters(kind)})


def _parameters(kind: Any) -> set[str]:
    return set(inspect.signature(kind).parameters)
