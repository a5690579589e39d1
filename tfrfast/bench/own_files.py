"""Times a user's own shards: files beside TensorFlow, objects beside plain requests."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tfrfast.bench.compare import Comparison, compare
from tfrfast.bench.pipelines import Weighed, Work, import_tensorflow
from tfrfast.bench.requests import Requests
from tfrfast.bench.shapes import warm
from tfrfast.errors import FeatureError
from tfrfast.example.parsing import infer_features
from tfrfast.features import Features
from tfrfast.order import Mixture, Plan, Weight
from tfrfast.reader import Reader
from tfrfast.storage.paths import expand_paths, refuse_urls
from tfrfast.storage.remote.urls import is_object

_BATCH_BYTES = 1 << 20
_MIN_BATCH_ROWS, _MAX_BATCH_ROWS = 32, 4096


class Measured(NamedTuple):
    """The comparisons, and their shards."""

    shards: list[str]
    batch_size: int
    features: Features | None
    comparisons: list[Comparison]


def measure(
    paths: Sequence[str],
    weights: Sequence[Weight] | None = None,
    *,
    batch_size: int | None = None,
    max_bytes: int,
    rounds: int = 3,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Measured:
    """Times reading of records, and decoding of Examples, in order and shuffled. With `weights`,
    each path is a data set of a mixture.

    Reads only the first shards of each set, `max_bytes` of each, and at most `max_bytes` of all
    records.
    """
    sets = [expand_paths(paths)] if weights is None else [expand_paths(each) for each in paths]
    requests = Requests() if all(map(is_object, paths)) else None
    if requests is not None:
        sets = [requests.add_first(each, max_bytes) for each in sets]
    else:
        for each in sets:
            refuse_urls(each, "tfrfast bench times either objects or")
        import_tensorflow()
        sets = [_first(each, max_bytes) for each in sets]
    shards = [path for each in sets for path in each]
    if requests is None:
        warm(shards)
    mixture = None
    if weights is not None:
        weighed = zip(sets, weights, strict=True)
        mixture = Mixture({str(number): pair for number, pair in enumerate(weighed)})
    with Reader(shards) if mixture is None else mixture.reader as reader:
        records = len(reader) if mixture is None else Plan(mixture, 1).positions
        if not records:
            raise ValueError("these files have no records to time.")
        mean_bytes = sum(shard.num_bytes for shard in reader.shards) / len(reader)
        rows = batch_size or _batch_size_of(mean_bytes)
        max_batches = max(1, int(max_bytes / mean_bytes / rows))
        features = _features_of(reader)
        forms = [None] if features is None else [None, features]
        if mixture is None:
            of_all = _compression_of(reader, shards)
            works = [
                Work(shards, rows, shuffled, form, compression=of_all)
                for form in forms
                for shuffled in (False, True)
            ]
        else:
            mixed = tuple(
                Weighed(files, weight, _compression_of(reader, files))
                for files, weight in zip(sets, weights or (), strict=True)
            )
            works = [Work([], rows, True, form, mixed, records) for form in forms]
        compared: list[Comparison] = []
        for work in works:
            progress(len(compared), len(works))
            compared.append(
                compare(
                    "these files" if mixture is None else "this mixture",
                    work,
                    reader if mixture is None else mixture,
                    rounds=rounds,
                    max_batches=max_batches,
                    requests=requests,
                )
            )
        progress(len(works), len(works))
        return Measured(shards, rows, features, compared)


def _first(shards: list[str], max_bytes: int) -> list[str]:
    chosen, total = [], 0
    for shard in shards:
        if total >= max_bytes:
            break
        chosen.append(shard)
        total += os.path.getsize(shard)
    return chosen


def _batch_size_of(mean_bytes: float) -> int:
    """Returns a power of two that makes batches of about a mebibyte."""
    rows = 1 << max(0, round(_BATCH_BYTES / mean_bytes) - 1).bit_length()
    return min(max(rows, _MIN_BATCH_ROWS), _MAX_BATCH_ROWS)


def _compression_of(reader: Reader, files: list[str]) -> str:
    """Returns the compression of these shards of a reader. TensorFlow reads shards of one only."""
    found = {shard.compression or "" for shard in reader.shards if shard.path in files}
    if len(found) > 1:
        names = " and ".join(sorted(name or "plain" for name in found))
        raise ValueError(f"some of these files are {names}. Time the files of each by themselves.")
    return found.pop()


def _features_of(reader: Reader) -> Features | None:
    """Returns specs for the records' features. None if the records are not Examples, or empty."""
    try:
        return infer_features(reader) or None
    except FeatureError:
        return None
