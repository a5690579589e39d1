"""Records and values as plain data for JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from tfrfast._native import record_kind
from tfrfast.base.contents import contents_of, tensor_of
from tfrfast.base.wire import fields_of
from tfrfast.cli.shown_batches import ShownBatch, shown_batches
from tfrfast.columns import Bytes
from tfrfast.columns.thumbnails import is_picture, png_of

_MAX_EXACT = 1 << 53  # JavaScript's numbers are exact up to here
_OPENED_LEVELS = 2
_MOST_FEATURES = 512
_EXAMPLE = record_kind(b"")
_SEQUENCE_EXAMPLE = "a tf.train.SequenceExample"


class Limits(NamedTuple):
    """What is shown of a record at most."""

    #: Values of a feature, and bytes of a string.
    values: int
    num_bytes: int
    #: Steps of all lists of a SequenceExample together.
    steps: int
    #: True if tensors and messages in byte strings are opened.
    opens: bool


#: Of a row in a list, and of one record.
ROW = Limits(8, 160, 4, False)
RECORD = Limits(4096, 1 << 16, 256, True)


def records_of(batches: Any, limits: Limits) -> Iterator[dict[str, Any]]:
    """Yields each record with its number, its size and its features."""
    for piece in shown_batches(batches, None):
        columns = {name: _rows(column, limits) for name, column in piece.columns.items()}
        for row, number in enumerate(piece.numbers()):
            record = piece.batch[row]
            held = ((name, rows[row]) for name, rows in columns.items())
            features = [{"name": name, **shown} for name, shown in held if shown is not None]
            yield {"record": number, "bytes": len(record)} | _body(piece, record, features, limits)


def _body(
    piece: ShownBatch, record: bytes, features: list[dict[str, Any]], limits: Limits
) -> dict[str, Any]:
    if features or (piece.kind is None and not record):
        return {"features": features}
    kind = piece.kind or "a tf.train.Example"
    if kind == _SEQUENCE_EXAMPLE and (opened := _sequence_features(record, limits)) is not None:
        return {"kind": kind, "features": opened}
    return {"kind": kind, "raw": _value(record, limits, _OPENED_LEVELS)}


def _rows(column: Any, limits: Limits) -> list[dict[str, Any] | None]:
    """Returns what is shown of each row of a column; None for a row without values."""
    values = column.values
    is_bytes = isinstance(values, Bytes)
    kind = "bytes" if is_bytes else str(values.dtype)
    rows: list[dict[str, Any] | None] = []
    for begin, end in pairwise(np.asarray(column.row_splits).tolist()):
        if begin == end:
            rows.append(None)
            continue
        row = values[begin : min(end, begin + limits.values)]
        row = row.astype(str).astype(float).tolist() if kind == "float32" else row.tolist()
        shown = [_value(each, limits, 0) if is_bytes else plain(each) for each in row]
        rows.append({"type": kind, "count": end - begin, "values": shown})
    return rows


def all_plain(value: Any) -> Any:
    """Returns lists and dicts with numbers as `plain` returns them."""
    if isinstance(value, dict):
        return {key: all_plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [all_plain(each) for each in value]
    return plain(value) if isinstance(value, int | float) else value


def plain(number: Any) -> Any:
    """Returns a number as JSON has it. Others are text: infinities, NaN, long integers."""
    if isinstance(number, float):
        return number if math.isfinite(number) else str(number)
    return number if -_MAX_EXACT <= number <= _MAX_EXACT else str(number)


def _value(value: bytes, limits: Limits, level: int) -> dict[str, Any]:
    """Returns what is shown of a byte string."""
    contents = contents_of(value)
    shown: dict[str, Any] = {"bytes": len(value), "kind": contents.kind}
    if contents.form:
        shown["form"] = contents.form
    numbers = _numbers_of(value) if contents.kind == "tensor" else None
    if contents.mime.startswith("image/") or is_picture(numbers):
        shown["is_picture"] = True
    if contents.mime:
        return shown
    if contents.kind == "text":
        text, is_cut = _text_of(value, limits.num_bytes)
        return shown | {"text": text, "is_cut": is_cut}
    if limits.opens and level < _OPENED_LEVELS and (opened := _opened(value, numbers, limits)):
        return shown | opened
    return shown | {"hex": value[: min(limits.num_bytes, 512)].hex(" ")}


def _opened(value: bytes, numbers: Any, limits: Limits) -> dict[str, Any] | None:
    """Returns the numbers of a tensor, or the contents of an Example; None for other bytes."""
    if numbers is not None:
        shown = numbers.reshape(-1)[: limits.values].tolist()
        return {"count": numbers.size, "numbers": [plain(each) for each in shown]}
    if value and record_kind(value) == _EXAMPLE:
        (piece,) = _shown_alone(value)
        held = ((name, _rows(column, limits)[0]) for name, column in piece.columns.items())
        features = [{"name": name, **shown} for name, shown in held if shown is not None]
        return {"form": "Example", "features": features} if features else None
    return None


def _numbers_of(value: bytes) -> Any:
    """Returns the array of a tensor whose type NumPy has; None for other bytes."""
    tensor = tensor_of(value)
    if tensor is None or not tensor.content or tensor.dtype in ("string", "bfloat16"):
        return None
    numbers = np.frombuffer(tensor.content, tensor.dtype).reshape(tensor.shape)
    return None if numbers.dtype.kind == "c" else numbers


def _text_of(value: bytes, limit: int) -> tuple[str, bool]:
    """Returns the beginning of a text, without a divided character, and whether it was cut."""
    shown = value[:limit]
    is_cut = len(shown) < len(value)
    if is_cut:
        while shown and shown[-1] & 0xC0 == 0x80:
            shown = shown[:-1]
        shown = shown[:-1] if shown and shown[-1] >= 0xC0 else shown
    return shown.decode(errors="backslashreplace"), is_cut


def media_of(value: bytes) -> tuple[str, bytes] | None:
    """Returns a browser's type and the bytes of a picture, sound or video; None for other bytes. A
    tensor of pixels becomes a PNG.
    """
    if mime := contents_of(value).mime:
        return mime, value
    numbers = _numbers_of(value)
    return ("image/png", png_of(numbers)) if is_picture(numbers) else None


def _sequence_features(record: bytes, limits: Limits) -> list[dict[str, Any]] | None:
    """Returns the features of a SequenceExample's context, and of its first steps."""
    found: list[tuple[str, bytes]] = []
    left = limits.steps
    try:
        for part, entries in fields_of(record):
            for _, entry in fields_of(_message(entries)):
                pair = dict(fields_of(_message(entry)))
                name = _message(pair.get(1, b"")).decode(errors="backslashreplace")
                if part == 1:
                    found.append((name, _message(pair.get(2, b""))))
                    continue
                for step, (_, each) in enumerate(fields_of(_message(pair.get(2, b"")))):
                    if left == 0:
                        break
                    found.append((f"{name}[{step}]", _message(each)))
                    left -= 1
    except ValueError:
        return None
    shown = ((name, _feature(feature, limits)) for name, feature in found[:_MOST_FEATURES])
    return [{"name": name, **each} for name, each in shown if each is not None]


def _shown_alone(example: bytes) -> Iterator[ShownBatch]:
    alone: Any = [example]
    return shown_batches([alone], None)


def _message(field: int | bytes | None) -> bytes:
    if not isinstance(field, bytes):
        raise ValueError("a number stands where a message belongs")
    return field


def _feature(feature: bytes, limits: Limits) -> dict[str, Any] | None:
    """Returns what is shown of a Feature alone, by way of an Example that holds it; None without
    values.
    """
    entry = b"\n\1x\x12" + _varint(len(feature)) + feature
    features = b"\n" + _varint(len(entry)) + entry
    (piece,) = _shown_alone(b"\n" + _varint(len(features)) + features)
    for column in piece.columns.values():
        return _rows(column, limits)[0]
    return None


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number >= 0x80:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])
