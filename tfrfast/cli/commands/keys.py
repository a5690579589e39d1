"""`tfrfast keys`: builds the key file with which `Reader.by_key` finds records."""

from __future__ import annotations

import argparse
import os

from tfrfast.base.sizes import format_bytes
from tfrfast.cli.common import Subparsers, add_command, parse_size, print_json, say
from tfrfast.cli.damage import left_out
from tfrfast.cli.ray import add_ray, executor_of
from tfrfast.jobs.building_keys import build_key_file
from tfrfast.reader import Reader


def add_parser(subparsers: Subparsers, help: str) -> None:
    parser = add_command(
        subparsers,
        "keys",
        run,
        help=help,
        description="Build the key file by which reader.by_key(FEATURE) finds records, beside the "
        "indexes.",
        on_corruption=True,
    )
    parser.add_argument("--by", required=True, metavar="FEATURE", help="what the keys are")
    parser.add_argument("--folder", help="save here instead; by_key() then needs folder=FOLDER")
    parser.add_argument(
        "--max-memory",
        type=parse_size,
        default=1 << 30,
        metavar="BYTES",
        help="how much to sort in memory (default: 1GiB)",
    )
    add_ray(parser)


def run(options: argparse.Namespace) -> int:
    with Reader(
        options.paths, on_corruption=options.on_corruption, progress=options.progress
    ) as reader:
        path, damage = build_key_file(
            reader,
            options.by,
            folder=options.folder,
            max_memory=options.max_memory,
            threads=None,
            progress=options.progress,
            executor=executor_of(options),
        )
    size = os.path.getsize(path)
    if options.json:
        print_json({"path": path, "bytes": size, "skipped": [each._asdict() for each in damage]})
    else:
        say(f"{path}, {format_bytes(size)}")
    return left_out(damage)
