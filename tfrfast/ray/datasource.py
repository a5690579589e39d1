"""Records as a source for Ray Data, which reads in tasks of its own."""

from __future__ import annotations

import copy
import functools
import inspect
import math
import pickle
from collections.abc import Iterator
from typing import Any

import ray
from ray.data import Datasource, ReadTask
from ray.data.block import BlockMetadata

from tfrfast.errors import RecordError
from tfrfast.jobs.chosen_records import ChosenRecords, ShardSizes
from tfrfast.order import Plan
from tfrfast.ray.parts import ReadPart, schema_of, tables_of
from tfrfast.ray.tasks import processors_of_task
from tfrfast.tables.scanning import Scan

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
    """The records of a scan, in ranges of about the same number of bytes.

    With `order`, the records of an epoch of that plan.
    """

    def __init__(self, scan: Scan, order: Plan | None, epoch: int) -> None:
        super().__init__()
        self._reader = reader = scan.reader
        self._scan = scan
        self._order = order
        self._epoch = epoch
        self._shards = ShardSizes(reader)
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
        self._schema = schema_of(self._scan)
        stored = sum(self._shards.sizes) / max(len(self._reader), 1)
        try:
            some = list(tables_of(self._scan.part(rows=slice(rows), threads=1)))
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
        if unknown := [name for name in names if name not in self._scan.columns]:
            known = ", ".join(map(repr, self._scan.columns))
            raise ValueError(f"There is no column {unknown[0]!r}. There are {known}.")
        some = copy.copy(self)
        some._scan = self._scan.part(names)
        some._measure()
        return some

    # -- tasks

    def get_read_tasks(
        self, parallelism: int, per_task_row_limit: int | None = None, **_: Any
    ) -> list[ReadTask]:
        """Returns a task for each range. Other versions of Ray pass other keywords."""
        return [self._task(part, per_task_row_limit) for part in self.parts(parallelism)]

    def parts(self, count: int) -> Iterator[ReadPart]:
        """Returns at most `count` ranges."""
        scan, order = self._scan, self._order
        columns = scan.batch_size, scan.features, scan._columns
        if order is None:
            for some in self._shards.divided(count):
                yield ReadPart(pickle.dumps(ChosenRecords(self._shards, some)), some, *columns)
            return
        total = len(self)
        count = min(count, total)
        everything = self._everything if total else None
        # The order travels to the tasks, unless their record numbers are smaller.
        encoded = order._encode()
        travels = len(encoded) <= max(_SMALL_ORDER_BYTES, 8 * total // max(count, 1))
        for i in range(count):
            places = range(total * i // count, total * (i + 1) // count)
            chosen: Any = encoded, self._epoch
            if not travels:
                chosen = order.records_at(self._epoch, places.start, places.stop)
            yield ReadPart(everything, places, *columns, chosen)

    @functools.cached_property
    def _everything(self) -> Any:
        """All shards, for tasks that may need any shard. A long list is in Ray's object store."""
        everything = pickle.dumps(ChosenRecords(self._shards, range(len(self._reader))))
        is_short = len(self._shards.names) <= _MAX_PATHS_IN_A_TASK
        return everything if is_short else ray.put(everything)

    def _files_of(self, part: ReadPart) -> list[str] | None:
        if part.chosen is not None:
            return None
        if self._reader._makes_records:
            return self._shards.names
        return self._shards.names[self._shards.holders_of(part.places)]

    def _task(self, part: ReadPart, limit: int | None) -> ReadTask:
        metadata = {
            # Skipped damaged records make fewer rows than planned.
            "num_rows": None if self._reader._skips_damage else len(part.places),
            "size_bytes": math.ceil(self._row_bytes * len(part.places)),
            "input_files": self._files_of(part),
            "exec_stats": None,
            "schema": self._schema,
        }
        options = {"schema": self._schema, "per_task_row_limit": limit}
        return ReadTask(
            functools.partial(_read, part),
            _made(BlockMetadata, metadata),
            **{key: options[key] for key in options if key in _parameters(ReadTask)},
        )


def _read(part: ReadPart) -> Iterator[Any]:
    rows = ray.get(part.rows) if isinstance(part.rows, ray.ObjectRef) else part.rows
    return part.read(rows, processors_of_task())


def _made(kind: Any, values: dict[str, Any]) -> Any:
    """Makes a dataclass of Ray's, whose fields differ between versions."""
    return kind(**{key: values[key] for key in values if key in _parameters(kind)})


def _parameters(kind: Any) -> set[str]:
    return set(inspect.signature(kind).parameters)
