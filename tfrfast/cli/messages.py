"""Records that hold other protobuf messages than Examples: the options that name the message, and
its fields as text and as JSON.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tfrfast._native import RecordBatch, printable
from tfrfast.cli.shown_batches import beginning, shortened
from tfrfast.example.parsing import parse_example
from tfrfast.messages import Message, MessageFeature

__all__ = [
    "add_message",
    "code_of",
    "lines_of_json",
    "lines_of_text",
    "message_features",
    "message_of",
    "shown_rows",
]

_BUILT_IN = {
    "tensorflow.Event": Message.event,
    "tensorflow.SequenceExample": Message.sequence_example,
}


def add_message(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--proto",
        metavar="FILE",
        help="a FileDescriptorSet, as `protoc --include_imports --descriptor_set_out` writes it, "
        "of the messages that records hold",
    )
    parser.add_argument(
        "--message",
        metavar="NAME",
        help=f"the full name of the message; {' and '.join(_BUILT_IN)} need no --proto",
    )


def message_of(options: argparse.Namespace) -> Message | None:
    """Returns the message that the options name. None if records are Examples."""
    if options.proto is not None:
        return Message(options.proto, options.message)
    if options.message is None:
        return None
    if options.message not in _BUILT_IN:
        raise ValueError(f"--message {options.message} needs --proto FILE, which describes it.")
    return _BUILT_IN[options.message]()


def code_of(options: argparse.Namespace) -> str:
    """Returns the Python code of the message that the options name."""
    if options.proto is None:
        return f"tfr.Message.{_BUILT_IN[options.message].__name__}()"
    name = "" if options.message is None else f", {options.message!r}"
    return f"tfr.Message({options.proto!r}{name})"


def message_features(message: Message, columns: Sequence[str] | None) -> dict[str, MessageFeature]:
    """Returns the chosen fields. By default all; the names of an enum in place of its numbers."""
    features = message.features(columns)
    return {
        name: message.names(name) if feature.fields[-1].names else feature
        for name, feature in features.items()
    }


def lines_of_text(
    batches: Iterable[RecordBatch],
    features: dict[str, MessageFeature],
    max_values: int,
    max_bytes: int,
) -> Iterator[str]:
    """Yields a few lines about each record, and the fields that are there."""
    for number, record, row in shown_rows(batches, features):
        yield f"record {number}: {len(record):,} bytes"
        for name, value in row.items():
            values = value if isinstance(value, list) else [value]
            yield f"  {printable(name)}: {shortened(values, max_values, max_bytes)}"


def lines_of_json(
    batches: Iterable[RecordBatch], features: dict[str, MessageFeature], limit: int | None
) -> Iterator[str]:
    """Yields a JSON object for each record. Lists and strings are cut to `limit`."""

    def plain(value: Any, is_text: bool) -> Any:
        if isinstance(value, list):
            return [plain(each, is_text) for each in value[:limit]]
        if isinstance(value, bytes):
            if is_text:
                return beginning(value, len(value) if limit is None else limit)
            return {"hex": value[:limit].hex()}
        return None if isinstance(value, float) and not math.isfinite(value) else value

    for number, record, row in _rows_of_messages(batches, features):
        shown = {name: plain(value, features[name].is_string) for name, value in row.items()}
        yield json.dumps({"record": number, "bytes": len(record), "features": shown})


def _rows_of_messages(
    batches: Iterable[RecordBatch], features: dict[str, MessageFeature]
) -> Iterator[tuple[int, bytes, dict[str, Any]]]:
    """Yields the number, the bytes and the fields of each record."""
    for batch in batches:
        parsed = parse_example(batch, features)
        columns = {name: parsed[name].tolist() for name in features}
        for row, number in enumerate(np.asarray(batch.indices).tolist()):
            yield number, batch[row], {name: each[row] for name, each in columns.items()}


def shown_rows(
    batches: Iterable[RecordBatch], features: dict[str, MessageFeature]
) -> Iterator[tuple[int, bytes, dict[str, Any]]]:
    """Yields the number, the bytes and the shown fields of each record. Fields are left out if they
    are not there, or are zero and may not be there.
    """
    marks = {
        name: replace(feature, content="presence", dtype="bool", default=None)
        for name, feature in features.items()
        if feature.fields[-1].oneof
    }
    for number, record, row in _rows_of_messages(batches, features):
        parsed = parse_example([record], marks) if marks else {}
        there = {**row, **{name: parsed[name].tolist() for name in marks}}
        yield (
            number,
            record,
            {
                name: value
                for name, value in row.items()
                if _has_any(there[name], features[name].fields[-1].repeated)
            },
        )


def _has_any(value: Any, counts_zero: bool) -> bool:
    """True if a value, or one in its lists, is shown."""
    if isinstance(value, list):
        return any(_has_any(each, counts_zero) for each in value)
    return counts_zero or bool(value)
