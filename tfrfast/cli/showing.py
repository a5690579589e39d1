"""The common part of `cat`, `head` and `sample`: showing records."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence

from tfrfast._native import RecordBatch, Survey
from tfrfast.cli.common import Subparsers, add_command, add_steps
from tfrfast.cli.examples import Piece, pieces_of, text_of
from tfrfast.cli.json_lines import JsonLines
from tfrfast.cli.records import Records
from tfrfast.errors import FeatureError
from tfrfast.features.names import not_found

_COUNT = 10
_MAX_VALUES = 8
_MAX_BYTES = 48


def add_showing_command(
    subparsers: Subparsers,
    name: str,
    choose: Callable[[Records, argparse.Namespace], Sequence[int]],
    *,
    help: str,
    description: str,
) -> argparse.ArgumentParser:
    """Adds a subcommand that shows the records whose numbers `choose` returns."""

    def run(options: argparse.Namespace) -> int:
        with Records(options) as records:
            _show(records.batches(choose(records, options)), options)
            return records.status()

    parser = add_command(
        subparsers,
        name,
        run,
        help=help,
        description=f"{description} tf.train.Examples are shown feature by feature, anything else "
        "as bytes.",
        progress=False,
        json=False,
        on_corruption=True,
    )
    add_steps(parser, "show the steps of episodes")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="one JSON object a line")
    how.add_argument(
        "--raw", action="store_true", help="the bytes themselves, nothing between them"
    )
    parser.add_argument(
        "--columns", metavar="A,B", type=_names, help="show only these features, in this order"
    )
    parser.add_argument(
        "--truncate",
        metavar="N",
        type=_at_least_one,
        help="show at most N values of a feature and N bytes of a string "
        f"(default: {_MAX_VALUES} and {_MAX_BYTES}; with --json: all)",
    )
    return parser


def add_count(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-n",
        "--count",
        type=_at_least_one,
        default=_COUNT,
        metavar="N",
        help=f"how many (default: {_COUNT})",
    )


def _show(batches: Iterator[RecordBatch], options: argparse.Namespace) -> None:
    if options.raw:
        if options.columns is not None or options.truncate is not None:
            raise ValueError("--raw shows whole records: leave --columns and --truncate out.")
        for batch in batches:
            data = batch.data[int(batch.offsets[0]) : int(batch.offsets[-1])]
            sys.stdout.buffer.write(data.tobytes())
        return
    lines = _lines_in(options)
    known: set[str] = set()
    shown = 0
    for piece in pieces_of(batches, options.columns):
        known |= piece.found
        shown += len(piece.batch)
        sys.stdout.write("".join(f"{line}\n" for line in lines(piece)))
    missing = [name for name in options.columns or () if name not in known]
    if missing and shown:
        if piece.kind is not None:
            Survey().add(piece.batch, piece.numbers())  # raises an error that says what it holds
        raise FeatureError(not_found(missing, known, options.columns, shown))


def _lines_in(options: argparse.Namespace) -> Callable[[Piece], Iterator[str]]:
    limit = options.truncate
    if options.json:
        writer = JsonLines(limit, features_only=options.columns is not None)
        return lambda piece: iter(writer.lines(piece))
    max_values, max_bytes = (_MAX_VALUES, _MAX_BYTES) if limit is None else (limit, limit)
    return lambda piece: text_of(piece, max_values, max_bytes)


def _names(text: str) -> list[str]:
    return list(dict.fromkeys(name for name in text.split(",") if name))


def _at_least_one(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number from 1 on, not {text!r}")
    return int(text)
