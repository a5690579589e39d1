"""The statistics of a data set's numbers, for normalising."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
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
from tfrfast.jobs.quantiles import Counted, QuantileSearch, counter, num_passes
from tfrfast.jobs.running import Advance, Workers
from tfrfast.loading.planned_features import planned_features
from tfrfast.loading.records import open_reader
from tfrfast.order import InOrder, Mixture
from tfrfast.reader import Reader, Skipped, all_damage, warn_of_damage
from tfrfast.storage.paths import Paths
from tfrfast.tables.number_sums import NumberSums, as_int64, sums_of

__all__ = ["NumberStats", "statistics"]

_BYTES_AT_ONCE = 4 << 20
# Counts take some 25 KB for each position.
_MOST_POSITIONS = 1 << 16
# Numbers that are kept for the later passes of quantiles. More numbers are read again.
_KEPT_BYTES = 1 << 30


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

    Quantiles are exact, too, and those of NumPy: the numbers of each position are counted by their
    leading bits, and then by the next bits, in two passes over float32 or four over integers. Up to
    a gibibyte of numbers is kept for the later passes. More numbers are read again.

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
    every = [_OfSource.of(reader, features, bool(wanted)) for reader in readers.values()]
    may_keep = executor is None and sum(data.num_bytes() for data in every) <= _KEPT_BYTES

    def pass_over(data: _OfSource, task: type[_Pass], *arguments: Any) -> Any:
        shards = ShardSizes(data.reader)
        size = part_bytes(sum(shards.sizes), workers.count)
        tasks: list[Any] = [
            task(ChosenRecords(shards, numbers), data.asked, *arguments)
            for numbers in cut_rows(shards, size)
        ]
        return workers.run("Adding numbers", tasks, "records")

    for data in every:
        for part, met in pass_over(data, _Sum, bool(wanted), may_keep):
            data.add(part, met)
        warn_of_damage(all_damage(data.damage, data.reader.skipped))
    groups = [[data] for data in every]
    if len(every) > 1:
        groups.append(every)
    searches = [_searches(group, wanted) for group in groups]
    for number in range(max((data.passes() for data in every), default=0) if wanted else 0):
        if number > 0:
            for at, data in enumerate(every):
                chosen = _prefixes([searches[at], *searches[len(every) :]], data, number)
                data.counts = {}
                if not chosen:
                    continue
                if may_keep:
                    data.count_kept(number, chosen)
                    continue
                for counts, met in pass_over(data, _CountAgain, number, chosen):
                    data.add_counts(counts, met)
        for group, found in zip(groups, searches, strict=True):
            for name, search in found.items():
                if number < num_passes(*group[0].asked.facts(name)):
                    search.narrow([data.counts[name] for data in group if name in data.counts])
    made = [_result(group, found, wanted) for group, found in zip(groups, searches, strict=True)]
    if not isinstance(source, Mixture):
        return made[0]
    whole = made[-1]
    whole.sources = dict(zip(readers, made, strict=False))
    return whole


def _searches(group: Sequence[_OfSource], wanted: Sequence[float]) -> dict[str, QuantileSearch]:
    """Returns the search for the quantiles of each feature that all of the data have alike."""
    return {
        name: QuantileSearch(
            group[0].asked.kinds[name], [each.numbers for each in _totals(group, name)], wanted
        )
        for name in _common(group)
    }


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


def _prefixes(
    searches: Sequence[dict[str, QuantileSearch]], data: _OfSource, number: int
) -> dict[str, list[list[int]]]:
    """Returns the prefixes at each position that a pass over the data must count, by feature."""
    chosen = {}
    for name in data.asked.shapes:
        if number < num_passes(*data.asked.facts(name)):
            each = [found[name].prefixes() for found in searches if name in found]
            chosen[name] = [sorted(set().union(*parts)) for parts in zip(*each, strict=True)]
    return chosen


def _result(
    group: Sequence[_OfSource], found: Mapping[str, QuantileSearch], wanted: Sequence[float]
) -> Statistics:
    stats = {}
    for name in _common(group):
        shape = group[0].asked.shapes[name]
        made = _stats(_totals(group, name), shape)
        if wanted:
            made = made._replace(quantiles=found[name].values().reshape(len(wanted), *shape))
        stats[name] = made
    records, episodes = (sum(each) for each in zip(*(data.size() for data in group), strict=True))
    return Statistics(stats, records, episodes, wanted)


class _Asked(NamedTuple):
    """The numeric features that are read, with the shape and the kind of each."""

    features: Features
    shapes: dict[str, tuple[int, ...]]
    kinds: dict[str, str]

    def facts(self, name: str) -> tuple[str, int]:
        """The kind of a feature, and the number of its positions."""
        return self.kinds[name], math.prod(self.shapes[name])


@dataclass
class _OfSource:
    """A source, and its numbers so far."""

    reader: Reader
    asked: _Asked
    is_fixed: bool
    totals: dict[str, list[NumberSums]] = field(default_factory=dict)
    counts: dict[str, Counted] = field(default_factory=dict)
    kept: dict[str, list[NDArray[Any]]] = field(default_factory=dict)
    damage: list[Skipped] = field(default_factory=list)
    missing: list[Int64Array] = field(default_factory=list)

    @classmethod
    def of(cls, reader: Reader, features: AnyFeatures | None, has_quantiles: bool) -> _OfSource:
        if not isinstance(features, Mapping):
            reader = reader._without_windows()
        asked, is_fixed = _numeric(_settled(reader, features))
        for name, shape in asked.shapes.items() if has_quantiles else ():
            if (positions := math.prod(shape)) > _MOST_POSITIONS:
                raise ValueError(
                    f"Feature {name!r} has {positions:,} numbers in each record, and quantiles are "
                    f"found for at most {_MOST_POSITIONS:,}. Leave it out with features=, or take "
                    "its numbers together as a VarLen."
                )
        return cls(reader, asked, is_fixed)

    def num_bytes(self) -> float:
        """The size of all numbers; infinite if it is not known."""
        row = sum(math.prod(shape) * 8 for shape in self.asked.shapes.values())
        return row * len(self.reader) if self.is_fixed else math.inf

    def passes(self) -> int:
        return max((num_passes(*self.asked.facts(name)) for name in self.asked.shapes), default=0)

    def add(self, part: _Numbers, met: _Met) -> None:
        self.missing.append(met.missing)
        for name, sums in part.sums.items():
            before = self.totals.get(name)
            self.totals[name] = sums if before is None else list(map(NumberSums.plus, before, sums))
            self.kept.setdefault(name, []).extend(part.kept.get(name, ()))
        self.add_counts(part.counts, met)

    def add_counts(self, counts: Mapping[str, Counted], met: _Met) -> None:
        self.damage += met.damage
        for name, (prefixes, tables) in counts.items():
            if name in self.counts:
                tables = tables + self.counts[name][1]
            self.counts[name] = prefixes, tables

    def count_kept(self, number: int, chosen: Mapping[str, list[list[int]]]) -> None:
        for name, prefixes in chosen.items():
            counts, add = counter(self.asked.kinds[name], number, prefixes)
            for values in self.kept.get(name, ()):
                add(values)
            self.counts[name] = prefixes, counts.counts()

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


def _numeric(features: Features) -> tuple[_Asked, bool]:
    """Returns the numeric features, and whether all have a fixed shape."""
    shapes: dict[str, tuple[int, ...]] = {}
    kinds: dict[str, str] = {}
    all_fixed = True
    for name, column in parse_example([], features).items():
        values = _values_of(column)
        if isinstance(values, np.ndarray):
            if values.dtype.kind not in "iub" and values.dtype != np.float32:
                raise TypeError(f"{name!r} has values of {values.dtype}: take float32 or integers.")
            is_fixed = isinstance(column, np.ndarray) and 0 not in column.shape[1:]
            shapes[name] = column.shape[1:] if is_fixed else ()
            kinds[name] = "float32" if values.dtype == np.float32 else "int64"
            all_fixed = all_fixed and is_fixed
    return _Asked({name: features[name] for name in shapes}, shapes, kinds), all_fixed


def _values_of(column: Any) -> Any:
    while hasattr(column, "values"):  # of rows of any length, on each level
        column = column.values
    return column


class _Met(NamedTuple):
    """The skipped damage, and the numbers of the records that were skipped."""

    damage: list[Skipped]
    missing: Int64Array


class _Numbers(NamedTuple):
    sums: dict[str, list[NumberSums]]
    counts: dict[str, Counted]
    kept: dict[str, list[NDArray[Any]]]


@dataclass
class _Pass(OfRecords):
    """Reads a range of records."""

    asked: _Asked

    def read(self, advance: Advance, take: Callable[[str, NDArray[Any]], None]) -> _Met:
        """Calls `take` with the numbers of each feature, batch by batch."""
        reader = self.rows.reader._with_columns(list(self.asked.features))
        missing = [np.empty(0, np.int64)]
        for numbers in self.rows.pieces(_BYTES_AT_ONCE, advance):
            records = reader.read(numbers)
            if len(records) != len(numbers):
                missing.append(np.setdiff1d(numbers, records.indices) + self.rows.base)
            for name, column in parse_example(records, self.asked.features).items():
                shape = self.asked.shapes[name]
                if shape and column.shape[1:] != shape:
                    raise FeatureError(f"{name!r} has rows of different shapes: give it a VarLen.")
                values = _values_of(column)
                is_float = self.asked.kinds[name] == "float32"
                take(name, values if is_float else as_int64(name, values))
        return _Met(reader.skipped, np.concatenate(missing))


@dataclass
class _Sum(_Pass):
    """The first pass: sums, counts for quantiles, and the numbers themselves."""

    counts: bool
    keep: bool

    def run(self, advance: Advance) -> tuple[_Numbers, _Met]:
        shapes, kinds = self.asked.shapes, self.asked.kinds
        sums = {name: _native.NumberSums(math.prod(shape)) for name, shape in shapes.items()}
        first = {name: [[0]] * math.prod(shape) for name, shape in shapes.items()}
        counters = {name: counter(kinds[name], 0, first[name]) for name in shapes if self.counts}
        kept: dict[str, list[NDArray[Any]]] = {}

        def take(name: str, values: NDArray[Any]) -> None:
            is_float = kinds[name] == "float32"
            (sums[name].add_floats if is_float else sums[name].add_ints)(values)
            if self.counts:
                counters[name][1](values)
                if self.keep:
                    kept.setdefault(name, []).append(values)

        met = self.read(advance, take)
        found = {
            name: [
                sums_of(each, kinds[name]) for each in sums[name].facts(kinds[name] == "float32")
            ]
            for name in shapes
        }
        counted: dict[str, Counted] = {
            name: (first[name], counts.counts()) for name, (counts, _) in counters.items()
        }
        return _Numbers(found, counted, kept), met


@dataclass
class _CountAgain(_Pass):
    """A further pass over some features: counts of the numbers with chosen prefixes."""

    number: int
    prefixes: dict[str, list[list[int]]]

    def run(self, advance: Advance) -> tuple[dict[str, Counted], _Met]:
        self.asked = self.asked._replace(
            features={name: self.asked.features[name] for name in self.prefixes}
        )
        counters = {
            name: counter(self.asked.kinds[name], self.number, prefixes)
            for name, prefixes in self.prefixes.items()
        }
        met = self.read(advance, lambda name, values: counters[name][1](values))
        return {
            name: (self.prefixes[name], counts.counts()) for name, (counts, _) in counters.items()
        }, met


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
