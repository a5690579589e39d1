"""Times a user's own shards beside TensorFlow."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tfrfast.bench.compare import Comparison, compare, timed_passes
from tfrfast.bench.pipelines import Weighed, Work, import_tensorflow
from tfrfast.bench.shapes import warm
from tfrfast.errors import FeatureError
from tfrfast.example.parsing import infer_features
from tfrfast.features import Features
from tfrfast.order import Mixture, Plan, Weight
from tfrfast.reader import Reader
from tfrfast.storage.paths import Paths, expand_paths, refuse_urls

_BATCH_BYTES = 1 << 20
_MIN_BATCH_ROWS, _MAX_BATCH_ROWS = 32, 4096


class Measured(NamedTuple):
    """The comparisons, and their shards."""

    shards: list[str]
    records: int
    batch_size: int
    features: Features | None
    comparisons: list[Comparison]


def measure(
    paths: Paths,
    *,
    batch_size: int | None = None,
    max_bytes: int,
    rounds: int = 3,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Measured:
    """Times reading of records, and decoding of Examples, in order and shuffled.

    Reads only the first shards, and at most `max_bytes` of their records.
    """
    found = expand_paths(paths)
    refuse_urls(found, "tfrfast bench times either objects or")
    import_tensorflow()
    shards = _first(found, max_bytes)
    warm(shards)
    with Reader(shards) as reader:
        if not len(reader):
            raise ValueError("these files have no records to time.")
        mean_bytes = sum(shard.num_bytes for shard in reader.shards) / len(reader)
        rows = batch_size or batch_size_of(mean_bytes)
        max_batches = max(1, int(max_bytes / mean_bytes / rows))
        features = features_of(reader)
        works = [
            Work(shards, rows, shuffled, each, compression=compression_of(reader, shards))
            for each in ([None] if features is None else [None, features])
            for shuffled in (False, True)
        ]
        compared = _compared("these files", works, reader, rounds, max_batches, progress)
        return Measured(shards, len(reader), rows, features, compared)


def measure_mixture(
    sources: Sequence[tuple[Paths, Weight]],
    *,
    batch_size: int | None = None,
    max_bytes: int,
    rounds: int = 3,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Measured:
    """Times a mixture of data sets beside sample_from_datasets: records, and Examples decoded.

    Reads only the first shards of each set, `max_bytes` of each, and at most `max_bytes` of the
    mixture's records.
    """
    mixed = []
    for paths, weight in sources:
        found = expand_paths(paths)
        refuse_urls(found, "tfrfast bench times either objects or")
        mixed.append(Weighed(_first(found, max_bytes), weight))
    import_tensorflow()
    shards = [path for each in mixed for path in each.files]
    warm(shards)
    mixture = Mixture({str(n): (each.files, each.weight) for n, each in enumerate(mixed)})
    with mixture.reader as reader:
        mixed = [each._replace(compression=compression_of(reader, each.files)) for each in mixed]
        records = Plan(mixture, 1).positions
        if not records:
            raise ValueError("these files have no records to time.")
        mean_bytes = sum(shard.num_bytes for shard in reader.shards) / len(reader)
        rows = batch_size or batch_size_of(mean_bytes)
        max_batches = max(1, int(max_bytes / mean_bytes / rows))
        features = features_of(reader)
        works = [
            Work([], rows, True, each, tuple(mixed), records)
            for each in ([None] if features is None else [None, features])
        ]
        compared = _compared("this mixture", works, mixture, rounds, max_batches, progress)
        return Measured(shards, records, rows, features, compared)


def _compared(
    data: str,
    works: Sequence[Work],
    source: Reader | Mixture,
    rounds: int,
    max_batches: int,
    progress: Callable[[int, int], None],
) -> list[Comparison]:
    done, total = 0, len(works) * timed_passes(rounds)

    def advance() -> None:
        nonlocal done
        done += 1
        progress(done, total)

    return [
        compare(data, work, source, rounds=rounds, max_batches=max_batches, progress=advance)
        for work in works
    ]


def _first(shards: list[str], max_bytes: int) -> list[str]:
    chosen, total = [], 0
    for shard in shards:
        if total >= max_bytes:
            break
        chosen.append(shard)
        total += os.path.getsize(shard)
    return chosen


def batch_size_of(mean_bytes: float) -> int:
    """Returns a power of two that makes batches of about a mebibyte."""
    rows = 1 << max(0, round(_BATCH_BYTES / mean_bytes) - 1).bit_length()
    return min(max(rows, _MIN_BATCH_ROWS), _MAX_BATCH_ROWS)


def compression_of(reader: Reader, files: list[str]) -> str:
    """Returns the compression of these shards of a reader. TensorFlow reads shards of one only."""
    found = {shard.compression or "" for shard in reader.shards if shard.path in files}
    if len(found) > 1:
        names = " and ".join(sorted(name or "plain" for name in found))
        raise ValueError(f"some of these files are {names}. Time the files of each by themselves.")
    return found.pop()


def features_of(reader: Reader) -> Features | None:
    """Returns specs for the records' features. None if the records are not Examples, or empty."""
    try:
        return infer_features(reader) or None
    except FeatureError:
        return None
