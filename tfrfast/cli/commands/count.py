"""Print the number of records, and nothing else. Payloads are not read: `tfrfast verify` does
that.
"""

from __future__ import annotations

import argparse

from tfrfast.cli.common import add_common, add_steps
from tfrfast.cli.shown_records import ShownRecords


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_common(parser, progress=False, json=False, on_corruption=True)
    add_steps(parser, "count the steps of episodes")


def run(options: argparse.Namespace) -> int:
    with ShownRecords(options) as records:
        print(records.count())
        return records.status()
