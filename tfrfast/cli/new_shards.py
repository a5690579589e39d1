"""The common part of subcommands that write shards."""

from __future__ import annotations

import argparse
from typing import Any

from tfrfast.cli.common import parse_size


def add_output(
    parser: argparse.ArgumentParser, example: str, *, num_shards: str, required: bool
) -> None:
    """Adds --out, and the number or the size of shards."""
    parser.add_argument(
        "--out",
        required=True,
        metavar="PREFIX",
        help=f"the beginning of the new names: {example}",
    )
    size = parser.add_mutually_exclusive_group(required=required)
    size.add_argument("--num-shards", type=int, metavar="N", help=num_shards)
    size.add_argument(
        "--max-bytes", type=parse_size, metavar="BYTES", help="largest shard, like 200M"
    )


def add_writing(parser: argparse.ArgumentParser) -> None:
    """Adds the options of writing."""
    parser.add_argument("--overwrite", action="store_true", help="replace shards of these names")
    parser.add_argument("--compression", choices=["GZIP"], help="of the new shards (default: none)")
    parser.add_argument("--level", type=int, metavar="0-9", help="level of the compression")
    parser.add_argument("--no-index", action="store_true", help="make no indexes")
    parser.add_argument(
        "--no-sync", action="store_true", help="do not wait until everything is on the disk"
    )


def writing_arguments(options: argparse.Namespace) -> dict[str, Any]:
    """Returns the options of writing, and --progress, as arguments of Python functions."""
    return {
        "num_shards": options.num_shards,
        "max_bytes": options.max_bytes,
        "overwrite": options.overwrite,
        "compression": options.compression,
        "level": options.level,
        "index": not options.no_index,
        "sync": not options.no_sync,
        "progress": options.progress,
    }
