"""The fields of small protobuf messages. The core reads those of records."""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["fields_of"]


def fields_of(message: bytes) -> Iterator[tuple[int, int | bytes | None]]:
    """Yields the numbers and the values of a message's fields; None for a value of fixed width.
    Raises ValueError for other bytes, and for a group.
    """
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        number, wire = tag >> 3, tag & 7
        if not 0 < number < 1 << 29:
            raise ValueError("no field has such a number")
        if wire == 0:
            value, at = _varint(message, at)
            yield number, value
            continue
        if wire == 2:
            size, at = _varint(message, at)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
        else:
            raise ValueError("no such kind of field")
        if at + size > len(message):
            raise ValueError("a field ends after its message")
        yield number, message[at : at + size] if wire == 2 else None
        at += size


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(message) and shift < 64:
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise ValueError("a number does not end")
