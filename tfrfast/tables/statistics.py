"""Statistics of a data set's features, from one pass over all records."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from tfrfast._native import NumberSums, ValueSummary, usable_processors
from tfrfast.base.progress import ProgressBar
from tfrfast.columns.arrow_nodes import ArrowNode
from tfrfast.columns.strings import Bytes
from tfrfast.features import Features, VarLen
from tfrfast.reader import Reader
from tfrfast.tables.number_sums import as_int64, sums_of
from tfrfast.tables.scanning import scan

__all__ = ["FeatureStats", "Histogram", "RecordStatistics", "statistics"]

FREQUENT = 10
# What values of a type are counted as, if not as int64.
_KINDS = {"bytes": "bytes", "float32": "float32", "float64": "float32"}
_BINS = 32
_MAX_SAMPLED = 1 << 16


class Histogram(NamedTuple):
    """The number of sampled values between neighbouring `edges`."""

    edges: list[float]
    counts: list[int]
    #: "value", or "bytes" of strings.
    of: str


class FeatureStats(NamedTuple):
    name: str
    #: "int64", "float32" or "bytes"
    type: str
    #: Records that have the feature, with or without values.
    records: int
    #: The number of all records.
    of_records: int
    values: int
    #: The number of values in a record with the feature.
    min_values: int
    max_values: int
    mean_values: float
    #: Statistics of numbers; None for strings. NaN is counted apart.
    min: float | int | None
    max: float | int | None
    mean: float | None
    #: The standard deviation of all numbers.
    std: float | None
    nan: int
    #: Bytes of a string; None for numbers.
    min_bytes: int | None
    max_bytes: int | None
    mean_bytes: float | None
    distinct: int
    #: True if `distinct` and the counts of `frequent` are exact. Otherwise counts are too low by at
    #: most `uncounted`, and `distinct` is an estimate.
    exact: bool
    uncounted: int
    #: Values and their counts. Strings are cut to 64 bytes.
    frequent: list[tuple[Any, int]]
    histogram: Histogram


class RecordStatistics(NamedTuple):
    #: The number of intact records.
    num_records: int
    #: An entry for each feature, by name.
    features: list[FeatureStats]


def statistics(
    reader: Reader,
    *,
    features: Features | None = None,
    columns: Sequence[str] | None = None,
    records: Any = None,
    threads: int | None = None,
    progress: bool | None = None,
    advance: Callable[[int, int], object] = lambda done, total: None,
) -> RecordStatistics:
    """Returns the statistics of each feature of a sample of the records, or of those in `columns`,
    or of `features` of a message. Doubles are rounded to float32.

    By default all records count. `advance` is told how many of the records are counted.
    """
    lists = features
    if lists is None:
        found = scan(reader, columns=columns, threads=threads).features
        lists = {name: VarLen(spec.dtype, inferred=True) for name, spec in found.items()}
    rows = scan(reader, features=lists, records=records, threads=threads)
    collectors = [
        _Collector(name, _KINDS.get(spec.dtype, "int64"), len(rows)) for name, spec in lists.items()
    ]
    seen = 0
    with (
        ThreadPoolExecutor(threads or usable_processors()) as pool,
        ProgressBar("Counting", progress, "records") as bar,
    ):
        for batch in ArrowNode.batches(rows):
            list(pool.map(_Collector.add, collectors, batch.children))
            seen += batch.length
            bar.update(seen, len(rows))
            advance(seen, len(rows))
    results = (each.result(seen) for each in collectors)
    return RecordStatistics(seen, sorted(results, key=lambda stats: stats.name))


def _rows_of(column: ArrowNode) -> tuple[Any, Any]:
    """Returns the number of values of each row, on all levels, and the values."""
    if not column.children:
        return np.ones(column.length, np.int64), column.column()
    splits, items = column.offsets(np.int64), column.children[0]
    while items.children:
        splits, items = items.offsets(np.int64)[splits], items.children[0]
    values: Any = items.column()
    return np.diff(splits), values[int(splits[0]) : int(splits[-1])]


class _Collector:
    """The statistics of one feature so far."""

    def __init__(self, name: str, kind: str, rows: int) -> None:
        self._name = name
        self._kind = kind
        self._rows = max(rows, 1)
        self._summary = ValueSummary()
        self._records = 0
        self._lengths = NumberSums(1)
        self._bytes = NumberSums(1)
        self._sample: list[Any] = []

    def add(self, column: ArrowNode) -> None:
        lengths, values = _rows_of(column)
        if column.null_count:
            lengths = lengths[column.present()]
        self._records += len(lengths)
        self._lengths.add_ints(lengths)
        if isinstance(values, Bytes):
            sizes = np.diff(values.offsets)
            self._bytes.add_ints(sizes)
            self._summary.add_strings(values.data, values.offsets)
            values = sizes
        elif self._kind == "int64":
            self._summary.add_ints(as_int64(self._name, values))
        else:
            self._summary.add_floats(values)
        # Samples the same share of every batch, about _MAX_SAMPLED values in all.
        step = max(
            1, math.ceil(self._rows * max(1, len(values) / max(column.length, 1)) / _MAX_SAMPLED)
        )
        self._sample.append(np.array(values[::step]))

    def result(self, of_records: int) -> FeatureStats:
        facts = self._summary.facts(FREQUENT, self._kind)
        is_number = self._kind != "bytes"
        numbers = sums_of(facts["numbers"], self._kind)
        lengths, sizes = (
            sums_of(each.facts(False)[0], "int64") for each in (self._lengths, self._bytes)
        )
        known = is_number and numbers.numbers > 0
        sample = np.concatenate([np.empty(0), *self._sample])
        return FeatureStats(
            self._name,
            self._kind,
            self._records,
            of_records,
            numbers.values,
            int(lengths.min),
            int(lengths.max),
            lengths.mean if lengths.values else 0.0,
            numbers.min if known else None,
            numbers.max if known else None,
            numbers.mean if known else None,
            numbers.std if known else None,
            numbers.nan,
            None if is_number else int(sizes.min),
            None if is_number else int(sizes.max),
            None if is_number else sizes.mean if sizes.values else 0.0,
            round(facts["distinct"]),
            facts["exact"],
            facts["uncounted"],
            facts["frequent"],
            _histogram(sample, "value" if is_number else "bytes"),
        )


def _histogram(sample: Any, of: str) -> Histogram:
    finite = sample[np.isfinite(sample)]
    if not len(finite):
        return Histogram([], [], of)
    low, high = float(finite.min()), float(finite.max())
    whole = bool((finite == np.floor(finite)).all())
    if whole and high - low < _BINS and max(-low, high) < 2**52:
        edges = np.arange(low, high + 2) - 0.5
    else:
        # A single far value would press all other values into one bar. So the outer thousandths are
        # left out.
        inner = np.quantile(finite, [0.001, 0.999])
        low, high = (float(each) for each in inner) if inner[0] < inner[1] else (low, high)
        half = max(0.5, float(np.spacing(abs(low))))
        edges = (
            np.linspace(low, high, _BINS + 1) if low < high else np.array([low - half, low + half])
        )
    counts, edges = np.histogram(finite, edges)
    return Histogram(edges.tolist(), counts.tolist(), of)
