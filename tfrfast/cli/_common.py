"""What subcommands share: arguments, tables, JSON."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from tfrfast._text import format_table
from tfrfast.shuffling import parse_bytes

Subparsers = Any  # argparse has no public name for it


def add_paths(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="+", metavar="PATHS", help="shards, or quoted globs")


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON, for scripts")


def add_progress(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--progress",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="draw a progress bar on stderr (default: on a terminal, when it takes long)",
    )


def parse_size(text: str) -> int:
    """An argument like 200M or 2GiB."""
    try:
        return parse_bytes(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def print_json(value: object) -> None:
    json.dump(value, sys.stdout, indent=2)
    print()


def print_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    print("\n".join(format_table(header, rows)))
