"""Times shards in a bucket beside plain requests for the same bytes."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from tfrfast.bench.duel import Timing, take_turns
from tfrfast.bench.own_files import batch_size_of, compression_of, features_of
from tfrfast.bench.pipelines import Weighed, Work, dataset_way, import_tensorflow, loader_way
from tfrfast.features import Features
from tfrfast.order import Mixture, Plan, Weight
from tfrfast.reader import Reader
from tfrfast.storage.paths import Paths, expand_paths
from tfrfast.storage.remote import answers
from tfrfast.storage.remote.client import use_client

REQUESTS, LOADER, DATASET = "requests", "tfr.Loader", "tfr.TFRecordDataset"
_REQUEST_BYTES = 8 << 20
_AT_ONCE = 64

_Request = tuple[str, str, int, int]  # URL, version, first byte, count


class RemoteComparison(NamedTuple):
    """The seconds of each contender in each round."""

    work: str
    records: int
    num_bytes: int
    """Bytes of these records."""
    requested_bytes: int
    """Bytes of the plain requests."""
    timings: dict[str, Timing]

    def records_per_s(self, contender: str) -> float:
        return self.records / statistics.median(self.timings[contender].seconds)

    def ratios(self, contender: str) -> list[float]:
        """Returns the contender's bytes a second as a part of the plain requests', by round."""
        theirs, ours = self.timings[REQUESTS].seconds, self.timings[contender].seconds
        share = self.num_bytes / self.requested_bytes
        return [share * t / o for t, o in zip(theirs, ours, strict=True)]

    def requested_per_s(self) -> float:
        return self.requested_bytes / statistics.median(self.timings[REQUESTS].seconds)

    def facts(self) -> dict[str, Any]:
        """All figures as plain values, for scripts."""
        ours = [name for name in self.timings if name != REQUESTS]
        return {
            "work": self.work,
            "records": self.records,
            "num_bytes": self.num_bytes,
            "requested_bytes_per_s": round(self.requested_per_s()),
            "records_per_s": {name: round(self.records_per_s(name)) for name in ours},
            "seconds": {name: timing.seconds for name, timing in self.timings.items()},
            "ratio": {name: round(statistics.median(self.ratios(name)), 2) for name in ours},
        }


class RemoteMeasured(NamedTuple):
    """The comparisons, and their shards."""

    shards: list[str]
    records: int
    batch_size: int
    features: Features | None
    comparisons: list[RemoteComparison]


def measure_remote(
    paths: Paths,
    *,
    batch_size: int | None = None,
    max_bytes: int,
    rounds: int = 3,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> RemoteMeasured:
    """Times reading of records, and decoding of Examples, in order and shuffled.

    Reads only the first shards, and at most `max_bytes` of their records. Times TFRecordDataset if
    TensorFlow is installed.
    """
    shards, requests = _first(expand_paths(paths), max_bytes)
    with Reader(shards) as reader:
        plan = _Plan(reader, len(reader), batch_size, max_bytes)
        works = [
            Work(shards, plan.rows, shuffled, each, compression=compression_of(reader, shards))
            for each in plan.decoded()
            for shuffled in (False, True)
        ]
        compared = _compared(works, reader, plan, requests, rounds, progress)
        return RemoteMeasured(shards, len(reader), plan.rows, plan.features, compared)


def measure_remote_mixture(
    sources: Sequence[tuple[Paths, Weight]],
    *,
    batch_size: int | None = None,
    max_bytes: int,
    rounds: int = 3,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> RemoteMeasured:
    """Times a mixture of data sets in buckets with a Loader: records, and Examples decoded.

    Reads only the first shards of each set, `max_bytes` of each, and at most `max_bytes` of the
    mixture's records. The plain requests are for these shards.
    """
    mixed, requests = [], []
    for paths, weight in sources:
        chosen, some = _first(expand_paths(paths), max_bytes)
        mixed.append(Weighed(chosen, weight))
        requests += some
    shards = [path for each in mixed for path in each.files]
    mixture = Mixture({str(n): (each.files, each.weight) for n, each in enumerate(mixed)})
    with mixture.reader as reader:
        mixed = [each._replace(compression=compression_of(reader, each.files)) for each in mixed]
        plan = _Plan(reader, Plan(mixture, 1).positions, batch_size, max_bytes)
        works = [
            Work([], plan.rows, True, each, tuple(mixed), plan.records) for each in plan.decoded()
        ]
        compared = _compared(works, mixture, plan, requests, rounds, progress)
        return RemoteMeasured(shards, plan.records, plan.rows, plan.features, compared)


class _Plan:
    """The amount and the form of the records in each pass."""

    def __init__(
        self, reader: Reader, records: int, batch_size: int | None, max_bytes: int
    ) -> None:
        if not len(reader) or not records:
            raise ValueError("these shards have no records to time.")
        self.mean_bytes = sum(shard.num_bytes for shard in reader.shards) / len(reader)
        self.rows = batch_size or batch_size_of(self.mean_bytes)
        self.max_batches = max(1, int(max_bytes / self.mean_bytes / self.rows))
        self.records = min(records, self.max_batches * self.rows)
        self.features = features_of(reader)

    def decoded(self) -> list[Features | None]:
        return [None] if self.features is None else [None, self.features]


def _compared(
    works: list[Work],
    source: Reader | Mixture,
    plan: _Plan,
    requests: list[_Request],
    rounds: int,
    progress: Callable[[int, int], None],
) -> list[RemoteComparison]:
    runs = [_runs(work, source, requests, plan.max_batches) for work in works]
    done, total = 0, (1 + rounds) * sum(map(len, runs))

    def advance() -> None:
        nonlocal done
        progress(done, total)
        done += 1

    compared = [
        RemoteComparison(
            str(work),
            plan.records,
            round(plan.records * plan.mean_bytes),
            sum(count for _, _, _, count in requests),
            take_turns(each, rounds, before_each=advance),
        )
        for work, each in zip(works, runs, strict=True)
    ]
    progress(total, total)
    return compared


def _first(shards: list[str], max_bytes: int) -> tuple[list[str], list[_Request]]:
    """Returns the first shards that together have `max_bytes`, and requests for these bytes."""
    chosen: list[str] = []
    requests: list[_Request] = []
    left = max_bytes
    for url in shards:
        if left <= 0:
            break
        facts = use_client().run(answers.examine(url, ""))
        end = min(facts.size, left)
        chosen.append(url)
        requests += [
            (url, facts.encode(), at, min(_REQUEST_BYTES, end - at))
            for at in range(0, end, _REQUEST_BYTES)
        ]
        left -= end
    return chosen, requests


def _runs(
    work: Work, source: Reader | Mixture, requests: list[_Request], max_batches: int
) -> dict[str, Callable[[], object]]:
    epochs = {LOADER: loader_way(work, source)}
    if not work.mixed:
        with contextlib.suppress(ImportError):
            import_tensorflow()
            epochs[DATASET] = dataset_way(work)

    def run_of(contender: str) -> Callable[[], None]:
        def run() -> None:
            for _ in itertools.islice(epochs[contender](), max_batches):
                pass

        return run

    return {
        REQUESTS: lambda: use_client().run(_request_all(iter(requests))),
        **{name: run_of(name) for name in epochs},
    }


async def _request_all(requests: Iterator[_Request]) -> None:
    async def work_off() -> None:
        for url, version, first_byte, count in requests:
            await answers.read(url, "", version, first_byte, count, lambda *_: None)

    await asyncio.gather(*(work_off() for _ in range(_AT_ONCE)))


def remote_header(measured: RemoteMeasured) -> tuple[str, ...]:
    contenders = list(measured.comparisons[0].timings)[1:]
    ours = (cell for each in contenders for cell in (f"{each}, records/s", "of that", "(range)"))
    return ("work", "requests, MB/s", *ours)


def remote_row(comparison: RemoteComparison) -> list[str]:
    cells = [comparison.work, f"{comparison.requested_per_s() / 1e6:,.0f}"]
    for contender in list(comparison.timings)[1:]:
        ratios = comparison.ratios(contender)
        cells += [
            f"{comparison.records_per_s(contender):,.0f}",
            f"{statistics.median(ratios):.2f} x",
            f"{min(ratios):.2f} to {max(ratios):.2f}",
        ]
    return cells
