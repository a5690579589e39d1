"""`tfrfast verify`: checks every CRC of every record."""

from __future__ import annotations

import argparse

from tfrfast.cli._common import LEAVES_OUT_ANYWAY, Subparsers, add_command, print_json, print_table
from tfrfast.verifying import verify


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
    found = verify(options.paths, progress=options.progress)
    damage = found.damage
    if options.json:
        print_json(
            {
                "good_records": found.num_records,
                "bytes": found.num_bytes,
                "damage": [each._asdict() for each in damage],
            }
        )
    elif damage:
        print(f"{found.num_records} good records, {len(damage)} damaged places:")
        print_table(
            ["from", "to", "records lost", "shard"],
            [(d.begin, d.end, d.records or "unknown", d.path) for d in damage],
        )
    else:
        print(
            f"{found.num_records} records in {found.num_shards} shards, {found.num_bytes} bytes: "
            "all good"
        )
    return 1 if damage else 0
