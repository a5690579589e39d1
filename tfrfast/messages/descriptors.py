"""Reads descriptors of protobuf messages: a FileDescriptorSet, or those of a Python class."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tfrfast.base.wire import fields_of

__all__ = [
    "GROUP",
    "MESSAGE",
    "DescribedField",
    "DescribedMessage",
    "Descriptors",
    "Enum",
    "read_set",
]

# Types of fields, with descriptor.proto's numbers.
_STRING, GROUP, MESSAGE, _BYTES, ENUM = 9, 10, 11, 12, 14
_LAST_TYPE = 18
_REPEATED = 3

# The features of an edition that change how a message is read, by their numbers in FeatureSet:
# field_presence, enum_type, utf8_validation, message_encoding.
_PRESENCE, _ENUM, _UTF8, _ENCODING = 1, 2, 4, 5
_IMPLICIT, _CLOSED, _VERIFY, _DELIMITED = 2, 2, 2, 2
_Features = Mapping[int, int]
_DEFAULTS: dict[str, _Features] = {
    "proto2": {_PRESENCE: 1, _ENUM: _CLOSED, _UTF8: 3, _ENCODING: 1},
    "proto3": {_PRESENCE: _IMPLICIT, _ENUM: 1, _UTF8: _VERIFY, _ENCODING: 1},
    "editions": {_PRESENCE: 1, _ENUM: 1, _UTF8: _VERIFY, _ENCODING: 1},
}


class Enum(NamedTuple):
    """The numbers and names of an enum, in the order of their declaration."""

    values: tuple[tuple[int, str], ...]
    is_closed: bool


class DescribedField(NamedTuple):
    """A field as its descriptor has it. `type_name` is that of its message or enum."""

    name: str
    number: int
    type: int
    is_repeated: bool
    type_name: str
    default: bytes | None
    oneof: int | None
    has_presence: bool
    checks_utf8: bool


@dataclass
class DescribedMessage:
    """A message type, with its fields in the order of their declaration."""

    name: str
    is_map_entry: bool = False
    fields: dict[str, DescribedField] = field(default_factory=dict)


@dataclass
class Descriptors:
    """All message types and enums of some files, by full name."""

    messages: dict[str, DescribedMessage] = field(default_factory=dict)
    enums: dict[str, Enum] = field(default_factory=dict)


def read_set(descriptor: Any) -> tuple[Descriptors, str | None]:
    """Returns what a descriptor describes, and the name of the message that it is of, if any.

    `descriptor` is a FileDescriptorSet as bytes or in a file; or a generated class or module.
    """
    if isinstance(descriptor, (str, os.PathLike)):
        return _of_files(_parts(_content_of(descriptor), 1), os.fspath(descriptor)), None
    if isinstance(descriptor, Descriptors):
        return descriptor, None
    if isinstance(descriptor, (bytes, bytearray, memoryview)):
        return _of_files(_parts(bytes(descriptor), 1), "The descriptor"), None
    found = getattr(descriptor, "DESCRIPTOR", None)
    if found is None:
        raise TypeError(
            "A Message takes a FileDescriptorSet, as bytes or as the path of a file that "
            "`protoc --include_imports --descriptor_set_out=FILE` wrote, or a generated class, not "
            f"{type(descriptor).__name__}."
        )
    file = getattr(found, "file", found)
    files: dict[str, bytes] = {}
    left = [file]
    while left:
        each = left.pop()
        if each.name not in files:
            files[each.name] = each.serialized_pb
            left += each.dependencies
    name = None if file is found else found.full_name
    return _of_files(list(files.values()), file.name), name


def _content_of(path: str | os.PathLike[str]) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except ValueError:  # of characters that no name has
        raise ValueError(f"{os.fspath(path)!r} is not the name of a file.") from None


def _of_files(files: list[bytes], where: Any) -> Descriptors:
    found = Descriptors()
    try:
        for each in files:
            _read_file(found, each)
    except (ValueError, IndexError, KeyError, RecursionError) as error:
        raise ValueError(
            f"{where} is no FileDescriptorSet. Write one with `protoc --include_imports "
            "--descriptor_set_out=FILE`, or with `buf build -o FILE`."
        ) from error
    if not found.messages:
        raise ValueError(f"{where} describes no messages. Is it a FileDescriptorSet?")
    return found


def _read_file(found: Descriptors, data: bytes) -> None:
    file = _fields(data)
    syntax = _text(file, 12) or "proto2"
    features = _own_features(_DEFAULTS[syntax], file, 8, 50)
    package = _text(file, 2)
    prefix = f"{package}." if package else ""
    for each in file.strings(5):
        _read_enum(found, prefix, each, features)
    for each in file.strings(4):
        _read_message(found, prefix, each, features)


def _read_message(found: Descriptors, prefix: str, data: bytes, features: _Features) -> None:
    parts = _fields(data)
    message = DescribedMessage(prefix + _text(parts, 1))
    message.is_map_entry = bool(_number(_options(parts, 7), 7))
    features = _own_features(features, parts, 7, 12)
    inner = f"{message.name}."
    for each in parts.strings(4):
        _read_enum(found, inner, each, features)
    for each in parts.strings(3):
        _read_message(found, inner, each, features)
    for each in parts.strings(2):
        described = _field_of(found, _fields(each), features, message.is_map_entry)
        message.fields[described.name] = described
    found.messages[message.name] = message


def _field_of(
    found: Descriptors, parts: _Parts, features: _Features, in_map: bool
) -> DescribedField:
    own = _own_features(features, parts, 8, 21)
    number, kind = _number(parts, 3), _number(parts, 5)
    if not 0 < number < 1 << 29 or not 0 < kind <= _LAST_TYPE:
        raise ValueError(f"no field has the number {number} and the type {kind}")
    type_name = _text(parts, 6).lstrip(".")
    if kind == MESSAGE and own[_ENCODING] == _DELIMITED:
        # A map and its values stay as they are. Its entry was read before it.
        inner = found.messages.get(type_name)
        if not in_map and (inner is None or not inner.is_map_entry):
            kind = GROUP
    oneof = next(reversed(parts.numbers(9)), None)
    is_repeated = _number(parts, 4) == _REPEATED
    has_presence = oneof is not None or kind in (MESSAGE, GROUP) or own[_PRESENCE] != _IMPLICIT
    return DescribedField(
        _text(parts, 1),
        number,
        kind,
        is_repeated,
        type_name,
        next(reversed(parts.strings(7)), None),
        oneof,
        has_presence and not is_repeated and not in_map,
        kind == _STRING and own[_UTF8] == _VERIFY,
    )


def _read_enum(found: Descriptors, prefix: str, data: bytes, features: _Features) -> None:
    parts = _fields(data)
    own = _own_features(features, parts, 3, 7)
    values = []
    for each in parts.strings(2):
        value = _fields(each)
        number = _number(value, 2) & 0xFFFFFFFF
        values.append((number - (number >> 31 << 32), _text(value, 1)))
    if not values:
        raise ValueError("an enum without names")
    found.enums[prefix + _text(parts, 1)] = Enum(tuple(values), own[_ENUM] == _CLOSED)


def _own_features(inherited: _Features, parts: _Parts, options: int, number: int) -> _Features:
    own = _options(_options(parts, options), number)
    return {**inherited, **{feature: numbers[-1] for feature, numbers in own.of_numbers.items()}}


def _options(parts: _Parts, number: int) -> _Parts:
    return _fields(b"".join(parts.strings(number)))


def _text(parts: _Parts, number: int) -> str:
    return next(reversed(parts.strings(number)), b"").decode()


def _number(parts: _Parts, number: int) -> int:
    return next(reversed(parts.numbers(number)), 0)


def _parts(data: bytes, number: int) -> list[bytes]:
    try:
        return _fields(data).strings(number)
    except ValueError:
        return [data]  # whose error says more


class _Parts(NamedTuple):
    """The values of a message's fields. A field with values of another kind counts as unknown."""

    of_numbers: dict[int, list[int]]
    of_strings: dict[int, list[bytes]]

    def numbers(self, number: int) -> list[int]:
        return self.of_numbers.get(number, [])

    def strings(self, number: int) -> list[bytes]:
        return self.of_strings.get(number, [])


def _fields(data: bytes) -> _Parts:
    parts = _Parts({}, {})
    for number, value in fields_of(data):
        if isinstance(value, int):
            parts.of_numbers.setdefault(number, []).append(value)
        elif value is not None:
            parts.of_strings.setdefault(number, []).append(value)
    return parts
