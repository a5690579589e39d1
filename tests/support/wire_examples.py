"""Writes protobuf wire bytes by hand, so that tests have Examples in every form."""

from __future__ import annotations

import struct


def varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number: int, payload: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def packed_ints(*values: int) -> bytes:
    return field(1, b"".join(map(varint, values)))


def unpacked_ints(*values: int) -> bytes:
    return b"".join(b"\x08" + varint(value) for value in values)


def packed_floats(*values: float) -> bytes:
    return field(1, struct.pack(f"<{len(values)}f", *values))


def unpacked_floats(*values: float) -> bytes:
    return b"".join(b"\x0d" + struct.pack("<f", value) for value in values)


def strings(*values: bytes) -> bytes:
    return b"".join(field(1, value) for value in values)


def bytes_feature(content: bytes) -> bytes:
    return field(1, content)


def float_feature(content: bytes) -> bytes:
    return field(2, content)


def int_feature(content: bytes) -> bytes:
    return field(3, content)


def ints(*values: int) -> bytes:
    return int_feature(packed_ints(*values))


def floats(*values: float) -> bytes:
    return float_feature(packed_floats(*values))


def byte_strings(*values: bytes) -> bytes:
    return bytes_feature(strings(*values))


def entry(key: bytes, feature: bytes) -> bytes:
    return field(1, field(1, key) + field(2, feature))


def example(*entries: bytes) -> bytes:
    return field(1, b"".join(entries))


def example_of(**features: bytes) -> bytes:
    return example(*(entry(key.encode(), feature) for key, feature in features.items()))
