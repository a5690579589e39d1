"""`tfrfast head`: shows the first records."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from tfrfast.cli.common import Subparsers
from tfrfast.cli.records import Records
from tfrfast.cli.showing import add_count, add_showing_command


def add_parser(subparsers: Subparsers, help: str) -> None:
    parser = add_showing_command(
        subparsers,
        "head",
        _choose,
        help=help,
        description="Print the first records.",
    )
    add_count(parser)


def _choose(records: Records, options: argparse.Namespace) -> Sequence[int]:
    return records.between(0, options.count)
