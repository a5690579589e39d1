"""The common part of subcommands: arguments, tables, JSON."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tfrfast._native import printable
from tfrfast.base.sizes import parse_bytes
from tfrfast.base.tables import format_table, terminal_width

Subparsers = Any  # argparse has no public name for this type


def add_command(
    subparsers: Subparsers,
    name: str,
    run: Callable[[argparse.Namespace], int],
    *,
    help: str,
    description: str,
    paths: bool = True,
    progress: bool = True,
    json: bool = True,
    on_corruption: bool = False,
) -> argparse.ArgumentParser:
    """Adds the subcommand `name`, with the arguments that many subcommands share."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        name, help=help, description=description
    )
    parser.set_defaults(run=run)
    if paths:
        parser.add_argument(
            "paths", nargs="+", metavar="PATHS", help="shards, URLs, or quoted globs"
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
    return parser


def add_steps(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument(
        "--steps",
        metavar="PREFIX",
        help=f"{what}, whose features begin with PREFIX, for example steps/",
    )


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
    json.dump(value, sys.stdout, indent=2)
    print()


def say(text: str) -> None:
    """Prints lines of untrusted text, with escapes for unprintable characters."""
    print("\n".join(map(printable, text.split("\n"))))


def print_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    print("\n".join(format_table(header, rows, terminal_width(sys.stdout))))


def names(text: str) -> list[str]:
    """Returns the names between commas, each once."""
    return list(dict.fromkeys(name for name in text.split(",") if name))
