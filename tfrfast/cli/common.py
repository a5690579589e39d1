"""The common part of subcommands: arguments, tables, JSON."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from tfrfast._native import printable
from tfrfast.base.sizes import counted, format_bytes, parse_bytes
from tfrfast.base.tables import format_table, terminal_width
from tfrfast.cli.plain import plain


def add_common(
    parser: argparse.ArgumentParser,
    *,
    paths: bool = True,
    on_corruption: bool = False,
    progress: bool = True,
    json: bool = True,
) -> None:
    """Adds the arguments that most subcommands have."""
    if paths:
        parser.add_argument(
            "paths", nargs="+", metavar="PATHS", help="shards, folders, URLs, or quoted globs"
        )
    if on_corruption:
        parser.add_argument(
            "--on-corruption",
            choices=["raise", "skip"],
            default="raise",
            help="skip leaves damaged records out; the exit code is 1 if there are any",
        )
    if progress:
        parser.add_argument(
            "--progress",
            action=argparse.BooleanOptionalAction,
            default=None,
            help="draw a progress bar on stderr (default: on a terminal, when it takes long)",
        )
    if json:
        parser.add_argument("--json", action="store_true", help="print JSON, for scripts")


def add_steps(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument(
        "--steps",
        metavar="PREFIX",
        help=f"{what}, whose features begin with PREFIX, for example steps/",
    )


def add_columns(parser: argparse.ArgumentParser, help: str) -> None:
    parser.add_argument("--columns", metavar="A,B", type=names, help=help)


def add_max_memory(parser: argparse.ArgumentParser, help: str) -> None:
    parser.add_argument(
        "--max-memory",
        type=parse_size,
        default=1 << 30,
        metavar="BYTES",
        help=f"{help} (default: 1GiB)",
    )


def add_output(
    parser: argparse.ArgumentParser, example: str, *, num_shards: str, required: bool = False
) -> None:
    """Adds the names of new shards, their number or size, and their compression."""
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
    parser.add_argument("--overwrite", action="store_true", help="replace shards of these names")
    parser.add_argument("--compression", choices=["GZIP"], help="of the new shards (default: none)")


def add_writing(parser: argparse.ArgumentParser) -> None:
    """Adds the other options of writing."""
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


def parse_size(text: str) -> int:
    """Returns the bytes of an argument like 200M or 2GiB."""
    try:
        return parse_bytes(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def parse_record_number(text: str) -> int:
    """Returns the number of an argument like 7 or -1."""
    number = int(text)
    if not -(2**63) <= number < 2**63:
        raise argparse.ArgumentTypeError(f"no data set has {text} records")
    return number


def print_json(value: object) -> None:
    print(json.dumps(plain(value), indent=2))


def print_written(made: Any, records: str = "records", files: str = "shards") -> None:
    """Prints how much a job has written."""
    count, paths = counted(made.num_records, records), counted(len(made.paths), files)
    print(f"{count}, {format_bytes(made.num_bytes)}, {paths}")


def say(text: str) -> None:
    """Prints lines of untrusted text, with escapes for unprintable characters."""
    print("\n".join(map(printable, text.split("\n"))))


def print_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    print("\n".join(format_table(header, rows, terminal_width(sys.stdout))))


def names(text: str) -> list[str]:
    """Returns the names between commas, each once."""
    return list(dict.fromkeys(name for name in text.split(",") if name))
