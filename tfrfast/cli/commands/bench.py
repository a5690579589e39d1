"""Read the files in order and shuffled, as records and (tf.train.Examples) decoded, with
tfr.TFRecordDataset, tfr.Loader and the fastest of several configurations of
tf.data.TFRecordDataset, in turns, from a warm page cache. Needs TensorFlow. URLs are read beside
plain requests for 8 MiB each, without TensorFlow.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

from tfrfast.base.progress import ProgressBar
from tfrfast.base.sizes import counted, format_bytes
from tfrfast.base.tables import terminal_width
from tfrfast.bench.compare import Comparison, compare, table_of
from tfrfast.bench.machine import describe_machine
from tfrfast.bench.pipelines import Weighed, Work, import_tensorflow
from tfrfast.bench.requests import PlainRequests
from tfrfast.bench.shapes import warm
from tfrfast.cli.common import add_common, parse_size, print_json, say
from tfrfast.errors import FeatureError
from tfrfast.example.parsing import infer_features
from tfrfast.features import Features
from tfrfast.order import Mixture, Plan
from tfrfast.reader import Reader
from tfrfast.storage.paths import expand_paths, refuse_urls
from tfrfast.storage.schemes import is_url

_PACKAGES = ("tfrfast", "numpy", "tensorflow", "tensorflow-cpu")
_BATCH_BYTES = 1 << 20
_MIN_BATCH_ROWS, _MAX_BATCH_ROWS = 32, 4096


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_common(parser)
    parser.add_argument(
        "--weights",
        type=_weights,
        metavar="W,W,...",
        help="read the PATHS as the data sets of a mixture with these weights, one for each "
        "argument, beside sample_from_datasets",
    )
    parser.add_argument(
        "--batch-size", type=int, metavar="N", help="records in a batch (default: about 1 MiB)"
    )
    parser.add_argument(
        "--rounds", type=int, default=3, metavar="N", help="turns for each (default: 3)"
    )
    parser.add_argument(
        "--max-bytes",
        type=parse_size,
        default=1 << 30,
        metavar="BYTES",
        help="read at most about BYTES of the first shards (default: 1GiB)",
    )


def _weights(text: str) -> list[Fraction]:
    try:
        return [Fraction(each.strip()) for each in text.split(",")]
    except (ValueError, ZeroDivisionError):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a list of weights such as 7,3 or 0.7,0.3"
        ) from None


class Measured(NamedTuple):
    """The comparisons, and their shards."""

    shards: list[str]
    batch_size: int
    features: Features | None
    comparisons: list[Comparison]


def run(options: argparse.Namespace) -> int:
    for name in ("batch_size", "rounds", "max_bytes"):
        value = getattr(options, name)
        if value is not None and value < 1:
            raise ValueError(f"--{name.replace('_', '-')} must be at least 1, not {value}.")
    weights = options.weights
    if weights is not None and len(weights) != len(options.paths):
        raise ValueError(
            f"--weights has {len(weights)} weights for {len(options.paths)} data sets. Each "
            "argument is a data set: quote its glob."
        )
    with ProgressBar("Timing", options.progress, unit="pipelines") as bar:
        measured = _measure(options, bar.update)
    machine = describe_machine(_PACKAGES)
    if options.json:
        print_json(
            {
                "machine": machine,
                "shards": measured.shards,
                "batch_size": measured.batch_size,
                "comparisons": [each.facts() for each in measured.comparisons],
            }
        )
        return 0
    for name, fact in machine.items():
        say(f"{name}: {fact}")
    read = measured.comparisons[0]
    print(
        f"\n{read.records:,} records ({format_bytes(read.payload_bytes)}) of "
        f"{counted(len(measured.shards), 'shards')}, batches of {measured.batch_size:,}, "
        f"median of {counted(options.rounds, 'rounds')}.\n"
    )
    print("\n".join(table_of(measured.comparisons, terminal_width(sys.stdout))))
    if measured.features is None:
        print("\nThe records are not tf.train.Examples, so decoding was not timed.")
    return 0


def _measure(options: argparse.Namespace, progress: Callable[[int, int], None]) -> Measured:
    """Times reading of records, and decoding of Examples, in order and shuffled. With --weights,
    each of the PATHS is a data set of a mixture.

    Reads only the first shards of each set, `max_bytes` of each, and at most `max_bytes` of all
    records.
    """
    paths, weights, max_bytes = options.paths, options.weights, options.max_bytes
    sets = [expand_paths(paths)] if weights is None else [expand_paths(each) for each in paths]
    requests = PlainRequests() if all(map(is_url, paths)) else None
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
        rows = options.batch_size or _batch_size_of(mean_bytes)
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
                for files, weight in zip(sets, weights, strict=True)
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
                    rounds=options.rounds,
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
