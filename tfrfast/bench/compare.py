"""Times tfrfast and others by turns, so that a slow machine slows all, over the same records.

Files are read beside TensorFlow's fastest configuration, objects beside plain requests for their
bytes.
"""

from __future__ import annotations

import itertools
import statistics
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tfrfast.base.tables import format_table
from tfrfast.bench.pipelines import (
    Epoch,
    Work,
    dataset_way,
    loader_dataset_way,
    loader_way,
    tensorflow_ways,
)
from tfrfast.bench.requests import PlainRequests
from tfrfast.order import Mixture
from tfrfast.reader import Reader

TENSORFLOW, REQUESTS = "TensorFlow", "requests"
DATASET, LOADER_DATASET, LOADER = "tfr.TFRecordDataset", "Loader.to_tf_dataset", "tfr.Loader"
_SHORT = {DATASET: "Dataset", LOADER_DATASET: "to_tf", LOADER: "Loader"}
_WIDTH_OF_RANGES = 100
_TRIALS = 2  # of each configuration of TensorFlow, after a trial that does not count


class Timing(NamedTuple):
    """The seconds of each round: by the clock, and the processor time of all threads."""

    seconds: list[float]
    processor_s: list[float]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


class Comparison(NamedTuple):
    """The seconds of each contender for the same records in each round."""

    data: str
    work: str
    records: int
    payload_bytes: int
    beside: str
    """The contender with which the others are compared."""
    tensorflow_way: str | None
    """The fastest configuration of TensorFlow, if that was timed."""
    requested_records: float
    """The records whose bytes were requested, if requests were timed."""
    timings: dict[str, Timing]

    @property
    def ours(self) -> list[str]:
        return [each for each in (DATASET, LOADER_DATASET, LOADER) if each in self.timings]

    def ratios(self, contender: str) -> list[float]:
        """Returns the speed as a multiple of the other's, round by round."""
        theirs, ours = self.timings[self.beside].seconds, self.timings[contender].seconds
        share = self.records / self._records_of(self.beside)
        return [share * t / o for t, o in zip(theirs, ours, strict=True)]

    def ratio(self, contender: str) -> float:
        return statistics.median(self.ratios(contender))

    def records_per_s(self, contender: str) -> float:
        return self._records_of(contender) / self.timings[contender].median

    def processor_s_per_million(self, contender: str) -> float:
        spent = statistics.median(self.timings[contender].processor_s)
        return spent * 1e6 / self._records_of(contender)

    def _records_of(self, contender: str) -> float:
        return self.requested_records if contender == REQUESTS else self.records

    def facts(self) -> dict[str, Any]:
        """All figures as plain values, for scripts."""
        return {
            "data": self.data,
            "work": self.work,
            "records": self.records,
            "payload_bytes": self.payload_bytes,
            "tensorflow_configuration": self.tensorflow_way,
            "records_per_s": {name: round(self.records_per_s(name)) for name in self.timings},
            "processor_s_per_million": {
                name: round(self.processor_s_per_million(name), 4) for name in self.timings
            },
            "seconds": {name: timing.seconds for name, timing in self.timings.items()},
            "ratio": {name: round(self.ratio(name), 2) for name in self.ours},
            "ratio_range": {
                name: [round(min(self.ratios(name)), 2), round(max(self.ratios(name)), 2)]
                for name in self.ours
            },
        }


def compare(
    data: str,
    work: Work,
    source: Reader | Mixture,
    *,
    rounds: int = 3,
    max_batches: int | None = None,
    requests: PlainRequests | None = None,
) -> Comparison:
    """Times tfrfast by turns with the requests or, without requests, with the fastest configuration
    of TensorFlow, which is found first.
    """
    way, requested = None, 0.0
    contenders: dict[str, Epoch] = {LOADER: loader_way(work, source)}
    if isinstance(source, Mixture):
        records, payload_bytes = _drawn(source, work)
    else:
        records, payload_bytes = len(source), _payload_bytes(source.shards)
    if requests is not None:
        contenders = {REQUESTS: requests.epoch, **contenders}
        reader = source.reader if isinstance(source, Mixture) else source
        file_bytes = sum(shard.num_bytes for shard in reader.shards)
        requested = requests.num_bytes / file_bytes * len(reader)
    else:
        theirs = tensorflow_ways(work)
        way = _fastest(theirs, max_batches)
        contenders = {TENSORFLOW: theirs[way], **contenders}
    if not isinstance(source, Mixture):
        try:
            contenders[DATASET] = dataset_way(work)
        except ImportError:  # without TensorFlow, a Loader alone reads objects
            if requests is None:
                raise
    elif requests is None:
        contenders[LOADER_DATASET] = loader_dataset_way(work, source)
    runs = {name: _run_of(start, max_batches) for name, start in contenders.items()}
    timings = take_turns(runs, rounds)
    timed = records if max_batches is None else min(records, max_batches * work.batch_size)
    timed_bytes = round(payload_bytes * (timed / max(1, records)))
    beside = TENSORFLOW if requests is None else REQUESTS
    return Comparison(data, str(work), timed, timed_bytes, beside, way, requested, timings)


def _drawn(mixture: Mixture, work: Work) -> tuple[int, float]:
    """Returns the number of an epoch's records, and their bytes."""
    counts = mixture.counts(1, 0).values()
    shards = iter(mixture.reader.shards)
    payload_bytes = 0.0
    for count, each in zip(counts, work.mixed, strict=True):
        own = list(itertools.islice(shards, len(each.files)))
        payload_bytes += count * _payload_bytes(own) / sum(len(shard.lengths) for shard in own)
    return sum(counts), payload_bytes


def _payload_bytes(shards: Iterable[Any]) -> int:
    return sum(int(shard.lengths.sum()) for shard in shards)


def _fastest(ways: dict[str, Epoch], max_batches: int | None) -> str:
    runs = {name: _run_of(start, max_batches) for name, start in ways.items()}
    trials = take_turns(runs, _TRIALS)
    return min(trials, key=lambda name: min(trials[name].seconds))


def _run_of(start: Epoch, max_batches: int | None) -> Callable[[], None]:
    def run() -> None:
        for _ in itertools.islice(start(), max_batches):
            pass

    return run


def take_turns(
    contenders: Mapping[str, Callable[[], object]],
    rounds: int = 5,
    warmups: int = 1,
    before_each: Callable[[], object] = lambda: None,
) -> dict[str, Timing]:
    """Times every contender once in each round, after `warmups` rounds that do not count."""
    timings: dict[str, Timing] = {name: Timing([], []) for name in contenders}
    for round_number in range(-warmups, rounds):
        for name, work in contenders.items():
            before_each()
            began, used = time.perf_counter(), time.process_time()
            work()
            took, used = time.perf_counter() - began, time.process_time() - used
            if round_number >= 0:
                timings[name].seconds.append(took)
                timings[name].processor_s.append(used)
    return timings


def table_of(comparisons: Sequence[Comparison], width: int | None) -> Iterator[str]:
    """Yields the lines of a table, lines that explain its columns, and a line for each case in
    which tfrfast is slower than TensorFlow. A narrow table has no ranges.
    """
    ranges = ["(range)"] if width is None or width >= _WIDTH_OF_RANGES else []
    columns = [cell for each in comparisons[0].ours for cell in (_SHORT[each], *ranges)]
    header = ["data", "work", f"{comparisons[0].beside}/s", *columns, "CPU s"]
    rows = (_row(each, bool(ranges)) for each in comparisons)
    yield from format_table(header, rows, width)
    yield ""
    for line in _explained(comparisons, bool(ranges)):
        yield from [line] if width is None else textwrap.wrap(line, width, break_on_hyphens=False)


def _explained(comparisons: Sequence[Comparison], has_ranges: bool) -> Iterator[str]:
    beside, ours = comparisons[0].beside, comparisons[0].ours
    yield (
        "requests/s: records a second that plain requests in order fetch."
        if beside == REQUESTS
        else "TensorFlow/s: records a second of the fastest configuration of TensorFlow."
    )
    names = " and ".join(ours)
    yield f"{', '.join(_SHORT[each] for each in ours)}: how many times as fast {names} are."
    if has_ranges:
        yield "(range): the same for the slowest and the fastest of all turns."
    yield f"CPU s: processor seconds for a million records, of {beside} and of {names}."
    for each in comparisons:
        for contender in ours if beside != REQUESTS else ():
            if each.ratio(contender) < 1:
                yield (
                    f"{contender} is slower than TensorFlow: {each.data}, {each.work}: "
                    f"{each.ratio(contender):.2f} x"
                )


def _row(comparison: Comparison, has_ranges: bool) -> list[str]:
    beside, ours = comparison.beside, comparison.ours
    cells = [comparison.data, comparison.work, f"{comparison.records_per_s(beside):,.0f}"]
    for contender in ours:
        ratios = comparison.ratios(contender)
        cells.append(f"{_short(comparison.ratio(contender))} x")
        if has_ranges:
            cells.append(f"{_short(min(ratios))}-{_short(max(ratios))}")
    spent = [comparison.processor_s_per_million(each) for each in (beside, *ours)]
    return [*cells, " ".join(map(_two_digits, spent))]


def _short(ratio: float) -> str:
    return f"{ratio:.2g}" if ratio < 0.995 else f"{ratio:.1f}" if ratio < 9.95 else f"{ratio:.0f}"


def _two_digits(seconds: float) -> str:
    return f"{seconds:.2g}" if seconds < 9.95 else f"{seconds:.0f}"
