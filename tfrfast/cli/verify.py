"""`tfrfast verify`: checks every CRC of every record."""

from __future__ import annotations

import argparse

from tfrfast._base.progress import ProgressBar
from tfrfast._verifying import count_good_records
from tfrfast.cli._common import LEAVES_OUT_ANYWAY, Subparsers, add_command, print_json, print_table
from tfrfast.reader import Reader


def add_parser(subparsers: Subparsers, help: str) -> None:
    add_command(
        subparsers,
        "verify",
        run,
        help=help,
        description="Read every record and check both its CRCs. If any are wrong, list the damaged "
        "byte ranges and exit with code 1.",
        skip_corrupt=LEAVES_OUT_ANYWAY,
    )


def run(options: argparse.Namespace) -> int:
    # Build the index now: an earlier one would hide what has happened to the headers since.
    reader = Reader(options.paths, on_corruption="skip", index="memory", progress=options.progress)
    with reader, ProgressBar("Verifying", options.progress) as bar:
        good = count_good_records(reader, bar.update)
        total = sum(shard.num_bytes for shard in reader.shards)
        damage = sorted(reader.skipped)
        if options.json:
            print_json(
                {
                    "good_records": good,
                    "bytes": total,
                    "damage": [each._asdict() for each in damage],
                }
            )
        elif damage:
            print(f"{good} good records, {len(damage)} damaged places:")
            print_table(
                ["from", "to", "records lost", "shard"],
                [(d.begin, d.end, d.records or "unknown", d.path) for d in damage],
            )
        else:
            print(f"{good} records in {len(reader.shards)} shards, {total} bytes: all good")
        return 1 if damage else 0
