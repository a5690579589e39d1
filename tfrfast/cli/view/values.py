"""Records and values as plain data for JSON."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from tfrfast._native import record_kind
from tfrfast.base.contents import contents_of, tensor_of
from tfrfast.base.wire import fields_of
from tfrfast.cli.messages import shown_rows
from tfrfast.cli.plain import plain
from tfrfast.cli.shown_batches import ShownBatch, beginning, shown_batches
from tfrfast.columns import Bytes
from tfrfast.columns.shown import is_picture, png_of
from tfrfast.example.parsing import parse_example
from tfrfast.features import VarLen
from tfrfast.messages import MessageFeature

EXACT = 1 << 53  # JavaScript's numbers are exact up to here
_OPENED_LEVELS = 2
# The least room of a value and of a feature. If there is less, some are left out.
_VALUE_ROOM = 32
_FEATURE_ROOM = 256
_MOST_NAME = 256
_EXAMPLE = record_kind(b"")
_SEQUENCE_EXAMPLE = "a tf.train.SequenceExample"
_ALONE = "x"


class Limits(NamedTuple):
    """The largest shown part of a record."""

    #: Values of a feature, and bytes of a string.
    values: int
    num_bytes: int
    #: Steps of all lists of a SequenceExample together.
    steps: int
    #: True if tensors and messages in byte strings are opened.
    opens: bool
    #: About how many bytes the record takes. Features have equal parts, and so have their values.
    room: int

    def part(self, of: int) -> Limits:
        """Returns the limits of each of `of` parts."""
        return self._replace(room=self.room // max(of, 1))

    @property
    def most_values(self) -> int:
        return max(1, min(self.values, self.room // _VALUE_ROOM))

    @property
    def most_features(self) -> int:
        return max(1, self.room // _FEATURE_ROOM)


#: The limits of a row in a list, and of one record.
ROW = Limits(8, 160, 4, False, 1 << 16)
RECORD = Limits(4096, 1 << 16, 256, True, 2 << 20)


def records_of(batches: Any, limits: Limits) -> Iterator[dict[str, Any]]:
    """Yields each record with its number, its size and its features."""
    for piece in shown_batches(batches, None):
        features = _features_of_rows(piece, limits)
        for row, number in enumerate(piece.numbers()):
            record = piece.batch[row]
            body = _body(piece, record, features[row], limits)
            yield {"record": number, "bytes": len(record)} | body


def messages_of(
    batches: Any, features: dict[str, MessageFeature], limits: Limits
) -> Iterator[dict[str, Any]]:
    """Yields each message with its number, its size and its fields, whose levels are one list."""
    for number, record, row in shown_rows(batches, features):
        shown = []
        each = limits.part(len(row))
        for name, value in itertools.islice(row.items(), limits.most_features):
            leaves = [*leaves_of(value)]
            kind = "bytes" if isinstance(leaves[0], bytes) else features[name].dtype
            shown.append(_feature(name, kind, leaves[: each.most_values], len(leaves), each))
        held = {"features": shown, "left_out": len(row) - len(shown)}
        yield {"record": number, "bytes": len(record)} | held


def leaves_of(value: Any) -> Iterator[Any]:
    """Yields the values of lists in lists."""
    if isinstance(value, list):
        for each in value:
            yield from leaves_of(each)
    else:
        yield int(value) if isinstance(value, bool) else value


def _body(piece: ShownBatch, record: bytes, features: _Shown, limits: Limits) -> dict[str, Any]:
    if features.shown or (piece.kind is None and not record):
        return {"features": features.shown, "left_out": features.left_out}
    kind = piece.kind or "a tf.train.Example"
    if kind == _SEQUENCE_EXAMPLE and (opened := _sequence_features(record, limits)) is not None:
        return {"kind": kind, "features": opened.shown, "left_out": opened.left_out}
    return {"kind": kind, "raw": _value(record, limits, _OPENED_LEVELS)}


class _Shown(NamedTuple):
    """What is shown of a record's features, and how many features are left out."""

    shown: list[dict[str, Any]]
    left_out: int


def _features_of_rows(piece: ShownBatch, limits: Limits, level: int = 0) -> list[_Shown]:
    """Returns the features of each record that have values."""
    splits = {
        name: np.asarray(column.row_splits).tolist() for name, column in piece.columns.items()
    }
    rows = []
    for row in range(len(piece.batch)):
        held = [name for name, ends in splits.items() if ends[row] < ends[row + 1]]
        each, shown = limits.part(len(held)), []
        for name in held[: limits.most_features]:
            values: Any = piece.columns[name].values
            begin, end = splits[name][row : row + 2]
            kind = "bytes" if isinstance(values, Bytes) else str(values.dtype)
            few = values[begin : min(end, begin + each.most_values)]
            few = few.astype(str).astype(float) if kind == "float32" else few
            shown.append(_feature(name, kind, few.tolist(), end - begin, each, level))
        rows.append(_Shown(shown, len(held) - len(shown)))
    return rows


def _feature(
    name: str, kind: str, few: list[Any], count: int, limits: Limits, level: int = 0
) -> dict[str, Any]:
    """Returns what is shown of a feature, whose first values are `few` of `count`."""
    if kind == "bytes":
        values: Any = [_value(each, limits.part(len(few)), level) for each in few]
    else:
        values = plain(few, EXACT)
    return {"name": cut_name(name), "type": kind, "count": count, "values": values}


def cut_name(name: str) -> str:
    """Returns the beginning of a long name."""
    return name if len(name) <= _MOST_NAME else f"{name[:_MOST_NAME]}…"


def _value(value: bytes, limits: Limits, level: int) -> dict[str, Any]:
    """Returns the shown part of a byte string."""
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
        most = min(limits.num_bytes, max(limits.room, _VALUE_ROOM))
        return shown | {"text": beginning(value, most), "is_cut": len(value) > most}
    opens = limits.opens and level < _OPENED_LEVELS
    if opens and (opened := _opened(value, numbers, limits, level + 1)):
        return shown | opened
    return shown | {"hex": value[: min(limits.num_bytes, max(limits.room, 24), 512)].hex(" ")}


def _opened(value: bytes, numbers: Any, limits: Limits, level: int) -> dict[str, Any] | None:
    """Returns the numbers of a tensor, or the contents of an Example; None for other bytes."""
    if numbers is not None:
        shown = numbers.reshape(-1)[: limits.most_values].tolist()
        return {"count": numbers.size, "numbers": plain(shown, EXACT)}
    if value and record_kind(value) == _EXAMPLE:
        (piece,) = _shown_alone(value)
        (found,) = _features_of_rows(piece, limits, level)
        return {"form": "Example", "features": found.shown} if found.shown else None
    return None


def _numbers_of(value: bytes) -> Any:
    """Returns the array of a tensor whose type NumPy has; None for other bytes."""
    tensor = tensor_of(value)
    if tensor is None or not tensor.content or tensor.dtype in ("string", "bfloat16"):
        return None
    numbers = np.frombuffer(tensor.content, tensor.dtype).reshape(tensor.shape)
    return None if numbers.dtype.kind == "c" else numbers


def media_of(value: bytes) -> tuple[str, bytes] | None:
    """Returns a browser's type and the bytes of a picture, sound or video; None for other bytes. A
    tensor of pixels becomes a PNG.
    """
    if mime := contents_of(value).mime:
        return mime, value
    numbers = _numbers_of(value)
    return ("image/png", png_of(numbers)) if is_picture(numbers) else None


def strings_of(record: bytes, name: str) -> Any:
    """Returns the byte strings of a feature of an Example, or of a SequenceExample, whose features
    have the names that the page shows.
    """
    if record_kind(record) == _SEQUENCE_EXAMPLE:
        found = _features_of_sequence(record, RECORD.steps)
        named = (_alone(feature) for each, feature in found if each == name)
        record, name = next(named, b""), _ALONE
    return parse_example([record], {name: VarLen("bytes")})[name][0]


def _sequence_features(record: bytes, limits: Limits) -> _Shown | None:
    """Returns what is shown of a SequenceExample."""
    try:
        found = [*_features_of_sequence(record, limits.steps)]
    except ValueError:
        return None
    each, shown = limits.part(len(found)), []
    for name, feature in found[: limits.most_features]:
        (piece,) = _shown_alone(_alone(feature))
        (alone,) = _features_of_rows(piece, each)
        shown += [of | {"name": cut_name(name)} for of in alone.shown]
    return _Shown(shown, max(0, len(found) - limits.most_features))


def _features_of_sequence(record: bytes, left: int) -> Iterator[tuple[str, bytes]]:
    """Yields the features of a SequenceExample's context, and of its first steps. Raises ValueError
    for other bytes.
    """
    for part, entries in fields_of(record):
        for _, entry in fields_of(_message(entries)):
            pair = dict(fields_of(_message(entry)))
            name = _message(pair.get(1, b"")).decode(errors="backslashreplace")
            if part == 1:
                yield name, _message(pair.get(2, b""))
                continue
            for step, (_, each) in enumerate(fields_of(_message(pair.get(2, b"")))):
                if left == 0:
                    break
                yield f"{name}[{step}]", _message(each)
                left -= 1


def _shown_alone(example: bytes) -> Iterator[ShownBatch]:
    alone: Any = [example]
    return shown_batches([alone], None)


def _message(field: int | bytes | None) -> bytes:
    if not isinstance(field, bytes):
        raise ValueError("a number stands where a message belongs")
    return field


def _alone(feature: bytes) -> bytes:
    """Returns an Example that holds a Feature alone."""
    entry = b"\n\1" + _ALONE.encode() + b"\x12" + _varint(len(feature)) + feature
    features = b"\n" + _varint(len(entry)) + entry
    return b"\n" + _varint(len(features)) + features


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number >= 0x80:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])
