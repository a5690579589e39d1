"""`tfrfast sample`: shows records drawn at random."""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence

from tfrfast.cli.common import Subparsers
from tfrfast.cli.records import Records
from tfrfast.cli.showing import add_count, add_showing_command


def add_parser(subparsers: Subparsers, help: str) -> None:
    parser = add_showing_command(
        subparsers,
        "sample",
        _choose,
        help=help,
        description="Print records drawn at random, each at most once, in the order of their "
        "numbers.",
    )
    add_count(parser)
    parser.add_argument("--seed", type=int, help="draw the same records in each run")


def _choose(records: Records, options: argparse.Namespace) -> Sequence[int]:
    total = records.count()
    drawn = random.Random(options.seed).sample(range(total), min(options.count, total))
    return sorted(drawn)
