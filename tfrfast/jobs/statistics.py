"""The statistics of a data set's numbers, for normalising."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tfrfast import _native
from tfrfast.base.arguments import checked_threads
from tfrfast.base.progress import ProgressBar
from tfrfast.base.refused_arguments import explains_arguments
from tfrfast.errors import FeatureError
from tfrfast.example.parsing import parse_example
from tfrfast.features import AnyFeatures, Features, VarLen
from tfrfast.jobs.chosen_records import ChosenRecords, ShardSizes, cut_rows
from tfrfast.jobs.cutting import part_bytes
from tfrfast.jobs.running import Advance, num_workers, run_tasks
from tfrfast.loading.planned_features import planned_features
from tfrfast.loading.records import open_reader
from tfrfast.order import InOrder
from tfrfast.reader import Reader, Skipped, all_damage, warn_of_damage
from tfrfast.storage.paths import Paths
from tfrfast.tables.number_sums import NumberSums, sums_of

__all__ = ["NumberStats", "statistics"]

_BYTES_AT_ONCE = 4 << 20
_PARTS_PER_WORKER = 8


class NumberStats(NamedTuple):
    """The statistics of a feature: arrays of its shape, or single values if rows have no shape."""

    mean: NDArray[np.float64]
    std: NDArray[np.float64]
    """The standard deviation: the square root of the mean square of the distances from the mean."""
    min: NDArray[np.float64]
    max: NDArray[np.float64]
    num_values: NDArray[np.int64]
    """The number of values without NaN. NaN counts in none of the statistics."""


@explains_arguments
def statistics(
    source: Reader | Paths,
    *,
    features: AnyFeatures | None = None,
    threads: int | None = None,
    progress: bool | None = None,
    executor: Executor | None = None,
    **reader_options: Any,
) -> dict[str, NumberStats]:
    """Returns the mean, the deviation and the range of each numeric feature, by the feature's name.

        stats = tfr.statistics(tfr.Steps("data/train-*", along="steps/"))
        mean, std, *_ = stats["steps/action"]  # arrays of 7, if an action has 7 numbers

    Sums are exact, and results are rounded once. So they do not depend on the order of the records
    or the number of workers. Only the numeric features of Steps are read, and a feature of a whole
    episode counts once for each step.

    Args:
      source: a Reader, such as Steps, or anything that Reader takes; `reader_options` are passed on
        to it. Take the statistics of each source of a Mixture.
      features: a dict of specs, as for `parse_example`, or a list of names. The default is all
        features of a sample of the records. A FixedLen has statistics for each of its positions,
        and its default counts as values. All values of a VarLen are taken together.
      threads, progress: as for Reader.
      executor: reads, instead of threads of this process: `ProcessPoolExecutor()`, or any other
        `concurrent.futures.Executor`. Its processes must see the same files under the same names.
    """
    if not isinstance(source, Reader | str) and hasattr(source, "reader"):
        raise TypeError("Take the statistics of each source: a Mixture weighs them.")
    reader = open_reader(source, reader_options)
    threads = checked_threads(threads)
    specs, shapes = _numeric(_settled(reader, features))
    if not specs:
        return {}
    tasks = [
        _Sum(rows, len(rows.numbers), specs, shapes)
        for rows in _cut(reader, num_workers(executor, threads))
    ]
    totals: dict[str, list[NumberSums]] = {}
    damage: list[Skipped] = []
    with ProgressBar("Adding numbers", progress, "records") as bar:
        for part, met in run_tasks(tasks, executor, threads, bar.adding(len(reader))):
            damage += met
            for name, sums in part.items():
                before = totals.get(name)
                totals[name] = sums if before is None else list(map(NumberSums.plus, before, sums))
    warn_of_damage(all_damage(damage, reader.skipped))
    none = NumberSums(0, 0, 0, 0, 0, 0, 0, 0, 0)
    return {
        name: _stats(totals.get(name, [none] * math.prod(shape)), shape)
        for name, shape in shapes.items()
    }


def _settled(reader: Reader, features: AnyFeatures | None) -> Features:
    if isinstance(features, Mapping):
        return features
    known = reader._known_features()
    compiled = planned_features("infer" if features is None else features, reader, InOrder())
    assert compiled is not None
    specs = {
        # With a FixedLen, a record that lacks the feature would count as zero.
        name: spec if getattr(spec, "default", None) is None else VarLen(spec.dtype, inferred=True)
        for name, spec in compiled.specs.items()
    }
    return {**specs, **{name: known[name] for name in known if features is None or name in specs}}


def _numeric(features: Features) -> tuple[Features, dict[str, tuple[int, ...]]]:
    """Returns the numeric features, and the shape of each."""
    shapes: dict[str, tuple[int, ...]] = {}
    for name, column in parse_example([], features).items():
        values = _values_of(column)
        if isinstance(values, np.ndarray):
            if values.dtype.kind not in "iub" and values.dtype != np.float32:
                raise TypeError(f"{name!r} has values of {values.dtype}: take float32 or integers.")
            is_fixed = isinstance(column, np.ndarray) and 0 not in column.shape[1:]
            shapes[name] = column.shape[1:] if is_fixed else ()
    return {name: features[name] for name in shapes}, shapes


def _values_of(column: Any) -> Any:
    while hasattr(column, "values"):  # of rows of any length, on each level
        column = column.values
    return column


@dataclass
class _Rows:
    reader: Reader
    numbers: range


def _cut(reader: Reader, workers: int) -> list[ChosenRecords] | list[_Rows]:
    if reader._makes_records:
        size = max(1, -(-len(reader) // (_PARTS_PER_WORKER * workers)))
        numbers = range(len(reader))
        return [_Rows(reader, numbers[at : at + size]) for at in range(0, len(reader), size)]
    shards = ShardSizes(reader)
    return [
        ChosenRecords(shards, numbers)
        for numbers in cut_rows(shards, part_bytes(sum(shards.sizes), workers))
    ]


@dataclass
class _Sum:
    """Reads a range of records, and sums their numbers."""

    rows: Any
    amount: int
    features: Features
    shapes: dict[str, tuple[int, ...]]

    def run(self, advance: Advance) -> tuple[dict[str, list[NumberSums]], list[Skipped]]:
        numbers = self.rows.numbers
        reader = self.rows.reader._with_columns(list(self.features))
        sums = {name: _native.NumberSums(math.prod(s)) for name, s in self.shapes.items()}
        kinds: dict[str, str] = {}
        size = reader._records_within(_BYTES_AT_ONCE)
        for at in range(0, len(numbers), size):
            some = numbers[at : at + size]
            columns = parse_example(reader.read(np.arange(some.start, some.stop)), self.features)
            for name, column in columns.items():
                values = _values_of(column)
                if self.shapes[name] and column.shape[1:] != self.shapes[name]:
                    raise FeatureError(f"{name!r} has rows of different shapes: give it a VarLen.")
                kinds[name] = "float32" if values.dtype == np.float32 else "int64"
                add = sums[name].add_floats if kinds[name] == "float32" else sums[name].add_ints
                add(values)
            advance(len(some))
        found = {
            name: [sums_of(each, kind) for each in sums[name].facts(kind == "float32")]
            for name, kind in kinds.items()
        }
        return found, reader.skipped


def _stats(sums: Sequence[NumberSums], shape: tuple[int, ...]) -> NumberStats:
    def array(values: list[float], dtype: Any = np.float64) -> Any:
        return np.array(values, dtype).reshape(shape)

    def known(each: NumberSums, value: float) -> float:
        return value if each.numbers else math.nan

    return NumberStats(
        array([each.mean for each in sums]),
        array([each.std for each in sums]),
        array([known(each, each.min) for each in sums]),
        array([known(each, each.max) for each in sums]),
        array([each.numbers for each in sums], np.int64),
    )
