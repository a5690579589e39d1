"""Times tfrfast and TensorFlow's fastest configuration, by turns, over the same files."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from tfrfast.bench.duel import Timing, speedups, take_turns
from tfrfast.bench.pipelines import (
    Epoch,
    Work,
    dataset_way,
    loader_dataset_way,
    loader_way,
    tensorflow_ways,
)
from tfrfast.order import Mixture
from tfrfast.reader import Reader

TENSORFLOW, DATASET, LOADER = "TensorFlow", "tfr.TFRecordDataset", "tfr.Loader"
LOADER_DATASET = "Loader.to_tf_dataset"
_TRIALS = 2  # of each configuration of TensorFlow, after a trial that does not count


class Comparison(NamedTuple):
    """The seconds of each contender for the same records in each round."""

    data: str
    work: str
    records: int
    payload_bytes: int
    tensorflow_way: str
    """The fastest configuration of TensorFlow, which was timed."""
    timings: dict[str, Timing]

    def ratio(self, contender: str) -> float:
        """Returns the speed as a multiple of TensorFlow's: the median of the rounds' ratios."""
        return speedups(self.timings, contender)[TENSORFLOW]

    def ratio_range(self, contender: str) -> tuple[float, float]:
        theirs, ours = self.timings[TENSORFLOW].seconds, self.timings[contender].seconds
        ratios = [t / o for t, o in zip(theirs, ours, strict=True)]
        return min(ratios), max(ratios)

    def records_per_s(self, contender: str) -> float:
        return self.records / statistics.median(self.timings[contender].seconds)

    def processor_s_per_million(self, contender: str) -> float:
        return statistics.median(self.timings[contender].processor_s) * 1e6 / self.records

    def facts(self) -> dict[str, Any]:
        """All figures as plain values, for scripts."""
        ours = [name for name in self.timings if name != TENSORFLOW]
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
            "ratio": {name: round(self.ratio(name), 2) for name in ours},
            "ratio_range": {name: [round(r, 2) for r in self.ratio_range(name)] for name in ours},
        }


def compare(
    data: str,
    work: Work,
    source: Reader | Mixture,
    *,
    rounds: int = 3,
    max_batches: int | None = None,
    progress: Callable[[], None] = lambda: None,
) -> Comparison:
    """Finds TensorFlow's fastest configuration, then times it and tfrfast by turns.

    `progress` is called after each of `timed_passes(rounds)` passes over the files.
    """
    theirs = tensorflow_ways(work)
    way = _fastest(theirs, max_batches, progress)
    contenders = {
        TENSORFLOW: theirs[way],
        LOADER: loader_way(work, source),
    }
    if isinstance(source, Mixture):
        contenders[LOADER_DATASET] = loader_dataset_way(work, source)
        records, payload_bytes = _drawn(source, work)
    else:
        contenders[DATASET] = dataset_way(work)
        records, payload_bytes = len(source), _payload_bytes(source.shards)
    runs = {name: _run_of(start, max_batches, progress) for name, start in contenders.items()}
    timings = take_turns(runs, rounds)
    timed = records if max_batches is None else min(records, max_batches * work.batch_size)
    timed_bytes = round(payload_bytes * (timed / max(1, records)))
    return Comparison(data, str(work), timed, timed_bytes, way, timings)


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


def timed_passes(rounds: int) -> int:
    """Returns the number of passes of `compare`: trials, a warm-up and the rounds."""
    return 2 * (1 + _TRIALS) + 3 * (1 + rounds)


def _fastest(ways: dict[str, Epoch], max_batches: int | None, progress: Callable[[], None]) -> str:
    runs = {name: _run_of(start, max_batches, progress) for name, start in ways.items()}
    trials = take_turns(runs, _TRIALS)
    return min(trials, key=lambda name: min(trials[name].seconds))


def _run_of(
    start: Epoch, max_batches: int | None, progress: Callable[[], None]
) -> Callable[[], None]:
    def run() -> None:
        for _ in itertools.islice(start(), max_batches):
            pass
        progress()

    return run
