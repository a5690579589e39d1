"""Print records, the first ten by default. tf.train.Examples are shown feature by feature, other
messages by --message, and anything else as bytes.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Iterator, Sequence

from tfrfast._native import RecordBatch, Survey
from tfrfast.cli.common import add_columns, add_common, add_steps, parse_record_number
from tfrfast.cli.json_lines import JsonLines
from tfrfast.cli.messages import (
    add_message,
    lines_of_json,
    lines_of_text,
    message_features,
    message_of,
)
from tfrfast.cli.shown_batches import ShownBatch, shown_batches, text_of
from tfrfast.cli.shown_records import ShownRecords
from tfrfast.errors import FeatureError
from tfrfast.features.names import not_found
from tfrfast.messages import Message

_COUNT = 10
_MAX_VALUES = 8
_MAX_BYTES = 48


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_common(parser, progress=False, json=False, on_corruption=True)
    parser.add_argument(
        "-n",
        "--count",
        type=_at_least_one,
        metavar="N",
        help=f"how many, from the first on (default: {_COUNT})",
    )
    parser.add_argument(
        "--records",
        metavar="I|A:B",
        type=_number_or_range,
        help="instead, record I, or records A to B-1; negative numbers count from the end, as in "
        "--records=-5:",
    )
    parser.add_argument(
        "--sample",
        action="store_true",
        help="draw the records at random, each at most once; show them in the order of their "
        "numbers",
    )
    parser.add_argument("--seed", type=int, help="with --sample: draw the same in each run")
    add_steps(parser, "show the steps of episodes")
    add_message(parser)
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="one JSON object a line")
    how.add_argument(
        "--raw", action="store_true", help="the bytes themselves, nothing between them"
    )
    add_columns(parser, "show only these features, in this order")
    parser.add_argument(
        "--truncate",
        metavar="N",
        type=_at_least_one,
        help="show at most N values of a feature and N bytes of a string "
        f"(default: {_MAX_VALUES} and {_MAX_BYTES}; with --json: all)",
    )


def run(options: argparse.Namespace) -> int:
    if options.records is not None and (options.sample or options.count is not None):
        raise ValueError("--records says which: leave --count and --sample out.")
    with ShownRecords(options) as records:
        _show(records.batches(_chosen(records, options)), options)
        return records.status()


def _chosen(records: ShownRecords, options: argparse.Namespace) -> Sequence[int]:
    if isinstance(options.records, int):
        return [records.number(options.records)]
    if options.records is not None:
        return records.between(*options.records)
    count = options.count or _COUNT
    if not options.sample:
        return records.between(0, count)
    total = records.count()
    return sorted(random.Random(options.seed).sample(range(total), min(count, total)))


def _show(batches: Iterator[RecordBatch], options: argparse.Namespace) -> None:
    if options.raw:
        if options.columns is not None or options.truncate is not None:
            raise ValueError("--raw shows whole records: leave --columns and --truncate out.")
        for batch in batches:
            data = batch.data[int(batch.offsets[0]) : int(batch.offsets[-1])]
            sys.stdout.buffer.write(data.tobytes())
        return
    message = message_of(options)
    if message is not None:
        for line in _lines_of(message, batches, options):
            print(line)
        return
    lines = _lines_in(options)
    known: set[str] = set()
    shown = 0
    for piece in shown_batches(batches, options.columns):
        known |= piece.found
        shown += len(piece.batch)
        sys.stdout.write("".join(f"{line}\n" for line in lines(piece)))
    missing = [name for name in options.columns or () if name not in known]
    if missing and shown:
        if piece.kind is not None:
            Survey().add(piece.batch, piece.numbers())  # raises an error that says what it holds
        raise FeatureError(not_found(missing, known, options.columns, shown))


def _lines_of(
    message: Message, batches: Iterator[RecordBatch], options: argparse.Namespace
) -> Iterator[str]:
    features = message_features(message, options.columns)
    limit = options.truncate
    if options.json:
        return lines_of_json(batches, features, limit)
    return lines_of_text(batches, features, limit or _MAX_VALUES, limit or _MAX_BYTES)


def _lines_in(options: argparse.Namespace) -> Callable[[ShownBatch], Iterator[str]]:
    limit = options.truncate
    if options.json:
        writer = JsonLines(limit, features_only=options.columns is not None)
        return writer.lines
    max_values, max_bytes = (_MAX_VALUES, _MAX_BYTES) if limit is None else (limit, limit)
    return lambda piece: text_of(piece, max_values, max_bytes)


def _number_or_range(text: str) -> int | tuple[int, int | None]:
    begin, colon, end = text.partition(":")
    if not colon:
        return parse_record_number(text)
    try:
        first = parse_record_number(begin or "0")
        last = parse_record_number(end) if end else None
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"expected A:B, like 0:10 or --records=-5:, not {text!r}"
        ) from None
    if last is not None and (first < 0) == (last < 0) and last < first:
        raise argparse.ArgumentTypeError(f"{text} ends before it begins")
    return first, last


def _at_least_one(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number from 1 on, not {text!r}")
    return int(text)
