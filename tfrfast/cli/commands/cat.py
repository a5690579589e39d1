"""`tfrfast cat`: shows records."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from tfrfast.cli.common import Subparsers, parse_record_number
from tfrfast.cli.records import Records
from tfrfast.cli.showing import add_showing_command

_SHOWN = 10


def add_parser(subparsers: Subparsers, help: str) -> None:
    parser = add_showing_command(
        subparsers,
        "cat",
        _choose,
        help=help,
        description="Print records, the first ten by default.",
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--record",
        type=parse_record_number,
        metavar="I",
        help="one record; a negative number counts from the end",
    )
    which.add_argument("--range", metavar="A:B", type=_range, help="records A to B-1")


def _choose(records: Records, options: argparse.Namespace) -> Sequence[int]:
    if options.record is not None:
        return [records.number(options.record)]
    return records.between(*(options.range or (0, _SHOWN)))


def _range(text: str) -> tuple[int, int | None]:
    begin, colon, end = text.partition(":")
    try:
        if not colon:
            raise ValueError
        first = parse_record_number(begin or "0")
        last = parse_record_number(end) if end else None
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected A:B, like 0:10 or -5:, not {text!r}") from None
    if last is not None and (first < 0) == (last < 0) and last < first:
        raise argparse.ArgumentTypeError(f"{text} ends before it begins")
    return first, last
