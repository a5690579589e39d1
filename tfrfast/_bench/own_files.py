"""Times a user's own shards beside TensorFlow."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple

from tfrfast._base.paths import Paths, expand_paths
from tfrfast._bench.compare import Comparison, compare, timed_passes
from tfrfast._bench.pipelines import Work, import_tensorflow
from tfrfast._bench.shapes import warm
from tfrfast.errors import FeatureError
from tfrfast.example import infer_features
from tfrfast.features import Features
from tfrfast.reader import Reader

_BATCH_BYTES = 1 << 20
_MIN_BATCH_ROWS, _MAX_BATCH_ROWS = 32, 4096


class Measured(NamedTuple):
    """The comparisons, and the shards that they read."""

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
    """Times reading records, and decoding them if they are Examples, in order and shuffled.

    Reads only the first shards that together have `max_bytes`, and at most that much of them.
    """
    import_tensorflow()
    shards = _first(expand_paths(paths), max_bytes)
    warm(shards)
    with Reader(shards) as reader:
        if not len(reader):
            raise ValueError("these files have no records to time.")
        mean_bytes = sum(shard.num_bytes for shard in reader.shards) / len(reader)
        rows = batch_size or _batch_size(mean_bytes)
        max_batches = max(1, int(max_bytes / mean_bytes / rows))
        features = _features(reader)
        works = [
            Work(shards, rows, shuffled, each)
            for each in ([None] if features is None else [None, features])
            for shuffled in (False, True)
        ]
        done, total = 0, len(works) * timed_passes(rounds)

        def advance() -> None:
            nonlocal done
            done += 1
            progress(done, total)

        compared = [
            compare(
                "these files",
                work,
                reader,
                rounds=rounds,
                max_batches=max_batches,
                progress=advance,
            )
            for work in works
        ]
        return Measured(shards, len(reader), rows, features, compared)


def _first(shards: list[str], max_bytes: int) -> list[str]:
    chosen, total = [], 0
    for shard in shards:
        if total >= max_bytes:
            break
        chosen.append(shard)
        total += os.path.getsize(shard)
    return chosen


def _batch_size(mean_bytes: float) -> int:
    """A power of two, so that a batch has about a mebibyte."""
    rows = 1 << max(0, round(_BATCH_BYTES / mean_bytes) - 1).bit_length()
    return min(max(rows, _MIN_BATCH_ROWS), _MAX_BATCH_ROWS)


def _features(reader: Reader) -> Features | None:
    """Specs for what the records hold. None if they are not Examples, or empty ones."""
    try:
        return infer_features(reader) or None
    except FeatureError:
        return None
