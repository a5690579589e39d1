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
    parser.add_argument(
        "--records",
        metavar="I|A:B",
        type=_number_or_range,
        default=(0, _SHOWN),
        help="record I, or records A to B-1; negative numbers count from the end",
    )


def _choose(records: Records, options: argparse.Namespace) -> Sequence[int]:
    if isinstance(options.records, int):
        return [records.number(options.records)]
    return records.between(*options.records)


def _number_or_range(text: str) -> int | tuple[int, int | None]:
    begin, colon, end = text.partition(":")
    if not colon:
        return parse_record_number(text)
    try:
        first = parse_record_number(begin or "0")
        last = parse_record_number(end) if end else None
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected A:B, like 0:10 or -5:, not {text!r}") from None
    if last is not None and (first < 0) == (last < 0) and last < first:
        raise argparse.ArgumentTypeError(f"{text} ends before it begins")
    return first, last
