"""`tfrfast bench`: times these files on this machine beside TensorFlow."""

from __future__ import annotations

import argparse
from fractions import Fraction
from typing import Any

from tfrfast.base.progress import ProgressBar
from tfrfast.base.sizes import counted, format_bytes
from tfrfast.base.tables import format_table
from tfrfast.bench.compare import DATASET, LOADER_DATASET
from tfrfast.bench.machine import describe_machine
from tfrfast.bench.own_files import measure, measure_mixture
from tfrfast.bench.remote_shards import (
    RemoteMeasured,
    measure_remote,
    measure_remote_mixture,
    remote_header,
    remote_row,
)
from tfrfast.bench.table import explained, header_of, row_of, where_slower
from tfrfast.cli.common import Subparsers, add_command, parse_size, print_json, say
from tfrfast.storage.paths import expand_paths
from tfrfast.storage.remote.urls import is_object

_PACKAGES = ("tfrfast", "numpy", "tensorflow", "tensorflow-cpu")


def add_parser(subparsers: Subparsers, help: str) -> None:
    parser = add_command(
        subparsers,
        "bench",
        run,
        help=help,
        description="Read the files in order and shuffled, as records and (tf.train.Examples) "
        "decoded, with tfr.TFRecordDataset, tfr.Loader and the fastest of several configurations "
        "of tf.data.TFRecordDataset, in turns, from a warm page cache. Needs TensorFlow. URLs are "
        "read beside plain requests for 8 MiB each, without TensorFlow.",
    )
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
    expand_paths(options.paths)  # before TensorFlow is imported
    remote = None
    with ProgressBar("Timing", options.progress, unit="passes") as bar:
        arguments: dict[str, Any] = {
            "batch_size": options.batch_size,
            "max_bytes": options.max_bytes,
            "rounds": options.rounds,
            "progress": bar.update,
        }
        weighed = list(zip(options.paths, weights or (), strict=weights is not None))
        if all(map(is_object, options.paths)):
            remote = (
                measure_remote_mixture(weighed, **arguments)
                if weights
                else measure_remote(options.paths, **arguments)
            )
        elif weights is None:
            measured = measure(options.paths, **arguments)
        else:
            measured = measure_mixture(weighed, **arguments)
    machine = describe_machine(_PACKAGES)
    shown = measured if remote is None else remote
    if options.json:
        print_json(
            {
                "machine": machine,
                "shards": shown.shards,
                "batch_size": shown.batch_size,
                "comparisons": [each.facts() for each in shown.comparisons],
            }
        )
        return 0
    for name, fact in machine.items():
        say(f"{name}: {fact}")
    if remote is not None:
        _print_remote(remote, options.rounds)
        return 0
    read = measured.comparisons[0]
    print(
        f"\n{read.records:,} records ({format_bytes(read.payload_bytes)}) of "
        f"{counted(len(measured.shards), 'shards')}, batches of {measured.batch_size:,}, "
        f"median of {counted(options.rounds, 'rounds')}.\n"
    )
    dataset = DATASET if weights is None else LOADER_DATASET
    print("\n".join(format_table(header_of(dataset), map(row_of, measured.comparisons))))
    print("\n".join(["", *explained(dataset)]))
    if measured.features is None:
        print("\nThe records are not tf.train.Examples, so decoding was not timed.")
    for line in where_slower(measured.comparisons):
        print(line)
    return 0


def _print_remote(measured: RemoteMeasured, rounds: int) -> None:
    read = measured.comparisons[0]
    print(
        f"\n{read.records:,} records ({format_bytes(read.num_bytes)}) of "
        f"{counted(len(measured.shards), 'shards')}, batches of {measured.batch_size:,}, "
        f"median of {counted(rounds, 'rounds')}.\nA ratio is a rate in bytes a second, divided by "
        "that of plain requests in order.\n"
    )
    print("\n".join(format_table(remote_header(measured), map(remote_row, measured.comparisons))))
