"""`tfrfast cat`: shows records."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from typing import Any

from tfrfast.cli._common import Subparsers, add_command
from tfrfast.cli._examples import example_values, jsonable, shorten, shorten_bytes
from tfrfast.reader import Reader


def add_parser(subparsers: Subparsers) -> None:
    parser = add_command(
        subparsers,
        "cat",
        run,
        help="show records",
        description="Print records, the first ten by default: tf.train.Examples feature by feature, "
        "anything else as bytes.",
        progress=False,
        json=False,
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--record", type=int, metavar="I", help="one record; a negative number counts from the end"
    )
    which.add_argument("--range", metavar="A:B", type=_slice, help="records A to B-1")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="one JSON object a line")
    how.add_argument(
        "--raw", action="store_true", help="the bytes themselves, nothing between them"
    )


def run(options: argparse.Namespace) -> int:
    with Reader(options.paths) as reader:
        for number, record in _chosen(reader, options):
            if options.raw:
                sys.stdout.buffer.write(record)
                continue
            features = example_values(record)
            if options.json:
                print(json.dumps(_as_json(number, record, features)))
            elif features is None:
                print(f"record {number}: {len(record)} bytes  {shorten_bytes(record)}")
            else:
                print(f"record {number}: {len(record)} bytes")
                for name, values in features.items():
                    print(f"  {name}: {shorten(values)}")
    return 0


def _as_json(
    number: int, record: bytes, features: dict[str, list[Any]] | None
) -> dict[str, object]:
    facts: dict[str, object] = {"record": number, "bytes": len(record)}
    if features is None:
        return {**facts, "hex": record.hex()}
    return {**facts, "features": {name: jsonable(values) for name, values in features.items()}}


def _chosen(reader: Reader, options: argparse.Namespace) -> Iterator[tuple[int, bytes]]:
    if options.record is not None:
        yield options.record % max(len(reader), 1), reader[options.record]
        return
    for number in range(*(options.range or slice(10)).indices(len(reader))):
        yield number, reader[number]


def _slice(text: str) -> slice:
    begin, colon, end = text.partition(":")
    try:
        if not colon:
            raise ValueError
        return slice(int(begin) if begin else None, int(end) if end else None)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected A:B, like 0:10 or -5:, not {text!r}") from None
