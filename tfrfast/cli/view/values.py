"""Records and values as plain data for JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from tfrfast._native import record_kind
from tfrfast.base.contents import Contents, contents_of, fields_of, tensor_of
from tfrfast.cli.shown_batches import ShownBatch, shown_batches
from tfrfast.columns import Bytes
from tfrfast.columns.thumbnails import is_picture, png_of

_MAX_EXACT = 1 << 53  # JavaScript's numbers are exact up to here
_OPENED_LEVELS = 2
_MAX_STEPS = 256
_EXAMPLE = record_kind(b"")
_SEQUENCE_EXAMPLE = "a tf.train.SequenceExample"


class Limits(NamedTuple):
    """What is shown of a record at most."""

    #: Values of a feature, and bytes of a string.
    values: int
    num_bytes: int
    #: True if tensors and messages in byte strings are opened.
    opens: bool


#: Of a row in a list, and of one record.
ROW = Limits(8, 160, False)
RECORD = Limits(4096, 1 << 16, True)


def records_of(batches: Any, limits: Limits) -> Iterator[dict[str, Any]]:
    """Yields each record with its number, its size and its features."""
    for piece in shown_batches(batches, None):
        columns = {name: _rows(column, limits) for name, column in piece.columns.items()}
        for row, number in enumerate(piece.numbers()):
            record = piece.batch[row]
            features = [
                {"name": name, **rows[row]} for name, rows in columns.items() if rows[row]["count"]
            ]
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


def _rows(column: Any, limits: Limits) -> list[dict[str, Any]]:
    """Returns what is shown of each row of a column."""
    values = column.values
    is_bytes = isinstance(values, Bytes)
    kind = "bytes" if is_bytes else str(values.dtype)
    rows = []
    for begin, end in pairwise(np.asarray(column.row_splits).tolist()):
        row = values[begin : min(end, begin + limits.values)]
        row = row.astype(str).astype(float).tolist() if kind == "float32" else row.tolist()
        shown = [_value(each, limits, 0) if is_bytes else plain(each) for each in row]
        rows.append({"type": kind, "count": end - begin, "values": shown})
    return rows


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
    if contents.mime:
        return shown
    if contents.kind == "text":
        return shown | {"text": value[: limits.num_bytes].decode(errors="ignore")}
    if limits.opens and level < _OPENED_LEVELS and (opened := _opened(value, limits, level)):
        return shown | opened
    return shown | {"hex": value[: min(limits.num_bytes, 512)].hex(" ")}


def _opened(value: bytes, limits: Limits, level: int) -> dict[str, Any] | None:
    """Returns the contents of a tensor, or of an Example; None for other bytes."""
    if (numbers := _numbers_of(value)) is not None:
        shown = numbers.reshape(-1)[: limits.values].tolist()
        return {"count": numbers.size, "numbers": [plain(each) for each in shown]}
    if value and record_kind(value) == _EXAMPLE:
        (piece,) = _shown_alone(value)
        features = [
            {"name": name, **_rows(column, limits)[0]} for name, column in piece.columns.items()
        ]
        return {"form": "Example", "features": features} if features else None
    return None


def _numbers_of(value: bytes) -> Any:
    """Returns the array of a tensor whose type NumPy has; None for other bytes."""
    tensor = tensor_of(value)
    if tensor is None or not tensor.content or tensor.dtype in ("string", "bfloat16"):
        return None
    numbers = np.frombuffer(tensor.content, tensor.dtype).reshape(tensor.shape)
    return None if numbers.dtype.kind == "c" else numbers


def picture_of(value: bytes) -> tuple[str, bytes] | None:
    """Returns a browser's type and the bytes of a picture, sound or video; None for other bytes. A
    tensor of pixels becomes a PNG.
    """
    contents: Contents = contents_of(value)
    if contents.mime:
        return contents.mime, value
    numbers = _numbers_of(value)
    return ("image/png", png_of(numbers)) if is_picture(numbers) else None


def _sequence_features(record: bytes, limits: Limits) -> list[dict[str, Any]] | None:
    """Returns the features of a SequenceExample's context, and of its first steps."""
    features = []
    try:
        for part, entries in fields_of(record):
            for _, entry in fields_of(_message(entries)):
                pair = dict(fields_of(_message(entry)))
                name = _message(pair.get(1, b"")).decode(errors="backslashreplace")
                if part == 1:
                    features.append({"name": name, **_feature(_message(pair.get(2, b"")), limits)})
                    continue
                steps = [_message(each) for _, each in fields_of(_message(pair.get(2, b"")))]
                features += [
                    {"name": f"{name}[{step}]", **_feature(each, limits)}
                    for step, each in enumerate(steps[:_MAX_STEPS])
                ]
    except ValueError:
        return None
    return features


def _shown_alone(example: bytes) -> Iterator[ShownBatch]:
    alone: Any = [example]
    return shown_batches([alone], None)


def _message(field: int | bytes) -> bytes:
    if isinstance(field, int):
        raise ValueError("a number stands where a message belongs")
    return field


def _feature(feature: bytes, limits: Limits) -> dict[str, Any]:
    """Returns what is shown of a Feature alone, by way of an Example that holds it."""
    entry = b"\n\1x\x12" + _varint(len(feature)) + feature
    features = b"\n" + _varint(len(entry)) + entry
    (piece,) = _shown_alone(b"\n" + _varint(len(features)) + features)
    for column in piece.columns.values():
        return _rows(column, limits)[0]
    return {"type": "", "count": 0, "values": []}


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number >= 0x80:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])
