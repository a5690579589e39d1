"""Files of TensorBoard's events with values of any number, without TensorFlow."""

from __future__ import annotations

import struct
from pathlib import Path

import tfrfast as tfr

#: Features of the files, and their values in record i for i < 3, then again.
PATHS = {
    "step": "step",
    "time": "wall_time",
    "tag": "summary.value.tag",
    "values": "summary.value.tensor.float_val",
}


def tagged(number: int, data: bytes) -> bytes:
    """A field of bytes, in protobuf's wire format."""
    assert len(data) < 128
    return bytes([number << 3 | 2, len(data)]) + data


def event(step: int, *values: bytes) -> bytes:
    time = b"\x09" + struct.pack("<d", step + 0.25)
    return time + bytes([0x10, step]) + tagged(5, b"".join(values))


def write_events(path: Path, count: int) -> str:
    """Writes events of 0, 1, 2, 0, ... values, each with as many numbers as its place."""
    with tfr.Writer(path) as writer:
        for step in range(count):
            values = []
            for place in range(step % 3):
                numbers = tagged(5, struct.pack(f"<{place}f", *range(place)))
                values.append(tagged(1, tagged(1, b"t%d" % place) + tagged(8, numbers)))
            writer.write(event(step, *values))
    return str(path)
