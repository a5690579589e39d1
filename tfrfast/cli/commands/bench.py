"""`tfrfast bench`: times these files on this machine beside TensorFlow."""

from __future__ import annotations

import argparse
from fractions import Fraction

from tfrfast.base.progress import ProgressBar
from tfrfast.base.sizes import counted, format_bytes
from tfrfast.bench.machine import describe_machine
from tfrfast.bench.own_files import measure
from tfrfast.bench.table import table_of
from tfrfast.cli.common import Subparsers, add_command, parse_size, print_json, say

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
    with ProgressBar("Timing", options.progress, unit="pipelines") as bar:
        measured = measure(
            options.paths,
            weights,
            batch_size=options.batch_size,
            max_bytes=options.max_bytes,
            rounds=options.rounds,
            progress=bar.update,
        )
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
    print("\n".join(table_of(measured.comparisons)))
    if measured.features is None:
        print("\nThe records are not tf.train.Examples, so decoding was not timed.")
    return 0
