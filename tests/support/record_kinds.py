"""Records of each kind, byte for byte as protobuf and other programs write them."""

from __future__ import annotations

import struct

from wire_examples import byte_strings, entry, example, field, ints, varint


def event(number: int) -> bytes:
    """A tensorflow.Event: a double, a varint and a message."""
    summary = field(1, field(1, b"loss") + b"\x15" + struct.pack("<f", number / 7))
    return (
        b"\x09" + struct.pack("<d", 1.7e9 + number) + b"\x10" + varint(number) + field(5, summary)
    )


def sequence_example(number: int, steps: int = 2) -> bytes:
    context = example(entry(b"label", ints(number)))
    lists = entry(b"frame", b"".join(field(1, ints(number, step)) for step in range(steps)))
    return context + field(2, lists)


EXAMPLES = [
    example(entry(b"label", ints(3)), entry(b"name", byte_strings(b"cat"))),
    example(entry(b"label", ints(3))) + example(entry(b"name", byte_strings(b"cat"))),
    example(),
    b"",
]
SEQUENCES = [
    sequence_example(3),
    sequence_example(3, steps=0),
    field(2, entry(b"frame", field(1, ints(1)))),
    field(2, b"") + example(entry(b"label", ints(3))),
]
EVENTS = [event(3), b"\x09" + bytes(8) + field(3, b"brain.Event:2"), b"\x10\x07\x09" + bytes(8)]
MESSAGES = [
    field(1, b"image/jpeg") + field(2, b"\xff\xd8\xff"),
    b"\x08\x07" + field(2, b"text"),
    field(3, b"text"),
    example(entry(b"label", ints(3))) + b"\x78\x01",
    event(3) + field(99, b"more"),
]
OTHERS = [b"text", b"\xff\xd8\xff\xe0\x00\x10JFIF", bytes(10), b'{"a": 1}', b"\x0a\x7fcut"]
