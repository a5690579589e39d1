"""The statistics of a data set's numbers, for normalising."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tfrfast import _native
from tfrfast.base.arguments import Int64Array
from tfrfast.base.refused_arguments import explains_arguments
from tfrfast.errors import FeatureError
from tfrfast.example.parsing import parse_example
from tfrfast.features import AnyFeatures, Features, VarLen
from tfrfast.jobs.chosen_records import ChosenRecords, OfRecords, ShardSizes, cut_rows
from tfrfast.jobs.cutting import part_bytes
from tfrfast.jobs.number_stats import NumberStats, Statistics
from tfrfast.jobs.quantiles import KeptNumbers, Piece, quantiles_of
from tfrfast.jobs.running import Advance, Workers
from tfrfast.loading.planned_features import planned_features
from tfrfast.loading.records import open_reader
from tfrfast.order import InOrder, Mixture
from tfrfast.reader import Reader, Skipped, all_damage, warn_of_damage
from tfrfast.storage.paths import Paths
from tfrfast.tables.number_sums import NumberSums, as_int64, sums_of

__all__ = ["NumberStats", "statistics"]

_BYTES_AT_ONCE = 4 << 20
# Numbers that are kept in memory for quantiles. More numbers are kept in a file.
_KEPT_BYTES = 1 << 30
# A task's records if their numbers are kept: the numbers of several tasks are in memory besides,
# and an integer of one byte in a record has eight there.
_KEPT_PART_BYTES = 32 << 20


@explains_arguments
def statistics(
    source: Reader | Mixture | Paths,
    *,
    features: AnyFeatures | None = None,
    quantiles: Sequence[float] | None = None,
    threads: int | None = None,
    progress: bool | None = None,
    executor: Executor | None = None,
    **reader_options: Any,
) -> Statistics:
    """Returns the mean, the deviation and the range of each numeric feature, by the feature's name.

        stats = tfr.statistics(steps, quantiles=(0.01, 0.99))
        mean, std, *_ = stats["steps/action"]  # arrays of 7, if an action has 7 numbers
        low, high = stats["steps/action"].quantiles

    Sums are exact, and results are rounded once. So they do not depend on the order of the records
    or the number of workers. Only the numeric features of Steps are read, and a feature of a whole
    episode counts once for each step. Windows do not matter: each step counts once, or with
    `only=` each chosen step, and padding never.

    Quantiles are exact, too, and those of NumPy. All numbers are kept for them, a float32 in 4
    bytes and an integer in 8: the first gibibyte in memory, and the others in a temporary file, in
    the folder that TMPDIR names. At the end, all numbers of one position are in memory, and of a
    VarLen all numbers.

    Args:
      source: a Reader, such as Steps, or anything that Reader takes; `reader_options` are passed on
        to it. Of a Mixture, all records count, whatever its weights are; `.sources` has the
        statistics of each source, and features that differ between sources are only there.
      features: a dict of specs, as for `parse_example`, or a list of names. The default is all
        features of a sample of the records. A FixedLen has statistics for each of its positions,
        and its default counts as values. All values of a VarLen are taken together. A dict
        describes the windows of Steps, which then count as they are.
      quantiles: numbers from 0 to 1.
      threads, progress: as for Reader.
      executor: reads, instead of threads of this process, as for `tfr.verify`.
    """
    wanted = [] if quantiles is None else [float(each) for each in quantiles]
    if not all(0 <= each <= 1 for each in wanted):
        raise ValueError(f"quantiles are numbers from 0 to 1, not {quantiles}.")
    workers = Workers(executor, threads, progress)
    if isinstance(source, Mixture):
        readers = source._named_readers()
    else:
        readers = {"": open_reader(source, reader_options)}
    every = [_OfSource.of(reader, features) for reader in readers.values()]
    groups = [[data] for data in every]
    if len(every) > 1:
        groups.append(every)
    with KeptNumbers(_KEPT_BYTES) as kept:
        for data in every:
            shards = ShardSizes(data.reader)
            size = part_bytes(sum(shards.sizes), workers.count)
            tasks = [
                _Sum(ChosenRecords(shards, numbers), data.asked, bool(wanted))
                for numbers in cut_rows(shards, min(size, _KEPT_PART_BYTES) if wanted else size)
            ]
            for part in workers.run("Adding numbers", tasks, "records"):
                data.add(part, kept)
            warn_of_damage(all_damage(data.damage, data.reader.skipped))
        made = [_result(group, wanted, kept) for group in groups]
    if not isinstance(source, Mixture):
        return made[0]
    whole = made[-1]
    whole.sources = dict(zip(readers, made, strict=False))
    return whole


def _common(group: Sequence[_OfSource]) -> list[str]:
    first, *others = (data.asked for data in group)
    return [
        name
        for name in first.shapes
        if all(
            other.shapes.get(name) == first.shapes[name] and other.kinds[name] == first.kinds[name]
            for other in others
        )
    ]


def _totals(group: Sequence[_OfSource], name: str) -> list[NumberSums]:
    first, *others = (data.totals_of(name) for data in group)
    for other in others:
        first = list(map(NumberSums.plus, first, other))
    return first


def _result(group: Sequence[_OfSource], wanted: Sequence[float], kept: KeptNumbers) -> Statistics:
    stats = {}
    for name in _common(group):
        shape = group[0].asked.shapes[name]
        stats[name] = _stats(_totals(group, name), shape)
        if wanted:
            pieces = [piece for data in group for piece in data.kept.get(name, ())]
            found = quantiles_of(kept, pieces, math.prod(shape), wanted)
            stats[name] = stats[name]._replace(quantiles=found.reshape(len(wanted), *shape))
    records, episodes = (sum(each) for each in zip(*(data.size() for data in group), strict=True))
    return Statistics(stats, records, episodes, wanted)


class _Asked(NamedTuple):
    """The numeric features that are read, with the shape and the kind of each."""

    features: Features
    shapes: dict[str, tuple[int, ...]]
    kinds: dict[str, str]


@dataclass
class _OfSource:
    """A source, and its numbers so far."""

    reader: Reader
    asked: _Asked
    totals: dict[str, list[NumberSums]] = field(default_factory=dict)
    kept: dict[str, list[Piece]] = field(default_factory=dict)
    damage: list[Skipped] = field(default_factory=list)
    missing: list[Int64Array] = field(default_factory=list)

    @classmethod
    def of(cls, reader: Reader, features: AnyFeatures | None) -> _OfSource:
        if not isinstance(features, Mapping):
            reader = reader._without_windows()
        return cls(reader, _numeric(_settled(reader, features)))

    def add(self, part: _Numbers, kept: KeptNumbers) -> None:
        self.damage += part.damage
        self.missing.append(part.missing)
        for name, sums in part.sums.items():
            before = self.totals.get(name)
            self.totals[name] = sums if before is None else list(map(NumberSums.plus, before, sums))
        for name, columns in part.columns.items():
            self.kept.setdefault(name, []).extend(kept.keep(columns))

    def totals_of(self, name: str) -> list[NumberSums]:
        none = NumberSums(0, 0, 0, 0, 0, 0, 0, 0, 149 if self.asked.kinds[name] == "float32" else 0)
        return self.totals.get(name) or [none] * math.prod(self.asked.shapes[name])

    def size(self) -> tuple[int, int]:
        """Returns how many records were read, and from how many episodes."""
        missing = np.concatenate([np.empty(0, np.int64), *self.missing])
        records = len(self.reader) - len(missing)
        if (episodes := getattr(self.reader, "episodes", None)) is None:
            return records, records
        holders = np.searchsorted(episodes.first_steps, missing, side="right") - 1
        left = episodes.lengths - np.bincount(holders, minlength=len(episodes.lengths))
        return records, int(np.count_nonzero(left))


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


def _numeric(features: Features) -> _Asked:
    shapes: dict[str, tuple[int, ...]] = {}
    kinds: dict[str, str] = {}
    for name, column in parse_example([], features).items():
        values = _values_of(column)
        if isinstance(values, np.ndarray):
            if values.dtype.kind not in "iub" and values.dtype != np.float32:
                raise TypeError(f"{name!r} has values of {values.dtype}: take float32 or integers.")
            is_fixed = isinstance(column, np.ndarray) and 0 not in column.shape[1:]
            shapes[name] = column.shape[1:] if is_fixed else ()
            kinds[name] = "float32" if values.dtype == np.float32 else "int64"
    return _Asked({name: features[name] for name in shapes}, shapes, kinds)


def _values_of(column: Any) -> Any:
    while hasattr(column, "values"):  # of rows of any length, on each level
        column = column.values
    return column


class _Numbers(NamedTuple):
    """The numbers of some records."""

    sums: dict[str, list[NumberSums]]
    #: For quantiles: a row for each position.
    columns: dict[str, list[NDArray[Any]]]
    damage: list[Skipped]
    #: The records that were skipped.
    missing: Int64Array


@dataclass
class _Sum(OfRecords):
    """Adds up the numbers of a range of records, and keeps them if it should."""

    asked: _Asked
    keeps: bool

    def run(self, advance: Advance) -> _Numbers:
        shapes, kinds = self.asked.shapes, self.asked.kinds
        sums = {name: _native.NumberSums(math.prod(shape)) for name, shape in shapes.items()}
        kept: dict[str, list[NDArray[Any]]] = {name: [] for name in shapes}
        reader = self.rows.reader._with_columns(list(self.asked.features))
        missing = [np.empty(0, np.int64)]
        for numbers in self.rows.pieces(_BYTES_AT_ONCE, advance):
            records = reader.read(numbers)
            if len(records) != len(numbers):
                missing.append(np.setdiff1d(numbers, records.indices) + self.rows.base)
            for name, column in parse_example(records, self.asked.features).items():
                shape = shapes[name]
                if shape and column.shape[1:] != shape:
                    raise FeatureError(f"{name!r} has rows of different shapes: give it a VarLen.")
                values = _values_of(column)
                if kinds[name] == "float32":
                    sums[name].add_floats(values)
                else:
                    values = as_int64(name, values)
                    sums[name].add_ints(values)
                if self.keeps:
                    kept[name].append(values.reshape(-1, math.prod(shape)).T)
        found = {}
        for name, each in sums.items():
            facts = each.facts(kinds[name] == "float32")
            found[name] = [sums_of(one, kinds[name]) for one in facts]
        return _Numbers(found, kept, reader.skipped, np.concatenate(missing))


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
