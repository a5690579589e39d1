"""Times tfrfast and others by turns, over the same records.

Files are read beside TensorFlow's fastest configuration, objects beside plain requests for their
bytes.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from tfrfast.bench.duel import Timing, take_turns
from tfrfast.bench.pipelines import (
    Epoch,
    Work,
    dataset_way,
    loader_dataset_way,
    loader_way,
    tensorflow_ways,
)
from tfrfast.bench.requests import Requests
from tfrfast.order import Mixture
from tfrfast.reader import Reader

TENSORFLOW, REQUESTS = "TensorFlow", "requests"
DATASET, LOADER_DATASET, LOADER = "tfr.TFRecordDataset", "Loader.to_tf_dataset", "tfr.Loader"
_TRIALS = 2  # of each configuration of TensorFlow, after a trial that does not count


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
    requests: Requests | None = None,
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
