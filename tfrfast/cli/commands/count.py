"""`tfrfast count`: counts records."""

from __future__ import annotations

import argparse

from tfrfast.cli.common import Subparsers, add_command, add_steps
from tfrfast.cli.shown_records import ShownRecords


def add_parser(subparsers: Subparsers, help: str) -> None:
    parser = add_command(
        subparsers,
        "count",
        run,
        help=help,
        description="Print the number of records, and nothing else. Payloads are not read: "
        "`tfrfast verify` does that.",
        progress=False,
        json=False,
        on_corruption=True,
    )
    add_steps(parser, "count the steps of episodes")


def run(options: argparse.Namespace) -> int:
    with ShownRecords(options) as records:
        print(records.count())
        return records.status()
