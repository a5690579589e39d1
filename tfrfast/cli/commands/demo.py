"""`tfrfast demo`: shows tfrfast at work on this machine, in a minute or two."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tfrfast.cli.common import Subparsers, add_command, print_json


def add_parser(subparsers: Subparsers, help: str) -> None:
    parser = add_command(
        subparsers,
        "demo",
        run,
        help=help,
        description="Make small data sets of three shapes, verify them, count that every record "
        "comes exactly once, train, stop and resume a Keras model, and time tfrfast beside "
        "tf.data.TFRecordDataset. Takes a minute or two and 400 MB of disk. Needs TensorFlow.",
        paths=False,
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FOLDER",
        help="make the data here, and keep them (default: in a temporary folder)",
    )


def run(options: argparse.Namespace) -> int:
    from tfrfast.cli.demo.run import DemoFailedError, run_demo

    said_to = sys.stderr if options.json else sys.stdout

    def say(line: str) -> None:
        print(line, file=said_to, flush=True)

    try:
        facts = run_demo(options.out, say, options.progress)
    except DemoFailedError as error:
        print(f"tfrfast: {error}", file=sys.stderr)
        return 2
    if options.json:
        print_json(facts)
    return 0
