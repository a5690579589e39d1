"""A minimal implementation of TFRecord. The tests compare every reader and writer with it."""

from __future__ import annotations

import functools
import os
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

OVERHEAD = 16


def _table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_TABLE = _table()


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


@functools.lru_cache(maxsize=10_000)  # many tests write the same records
def masked(data: bytes) -> int:
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def header(length: int) -> bytes:
    encoded = struct.pack("<Q", length)
    return encoded + struct.pack("<I", masked(encoded))


def frame(payload: bytes) -> bytes:
    return header(len(payload)) + payload + struct.pack("<I", masked(payload))


def shard_of(records: Iterable[bytes]) -> bytes:
    return b"".join(map(frame, records))


def write_shard(path: str | Path, records: Iterable[bytes]) -> str:
    Path(path).write_bytes(shard_of(records))
    return rested(path)


def rested(path: str | Path) -> str:
    """Sets the file's time back by some seconds, because a younger file would be scanned again."""
    times = os.stat(path)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns - 10**10))
    return str(path)


class Frame(NamedTuple):
    offset: int
    payload: bytes
    payload_is_good: bool


class Damage(NamedTuple):
    kind: str  # "bad header", "torn header", "torn payload"
    begin: int
    end: int
    records_before: int


def _length_at(data: bytes, at: int) -> int | None:
    """Returns the length in an intact header at `at`; None if the header is not intact."""
    if len(data) - at < 12 or masked(bytes(data[at : at + 8])) != _u32(data, at + 8):
        return None
    return int.from_bytes(data[at : at + 8], "little")


def _u32(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "little")


def _frame_at(data: bytes, at: int) -> Frame | None:
    length = _length_at(data, at)
    if length is None or length > len(data) - at - OVERHEAD:
        return None
    payload = data[at + 12 : at + 12 + length]
    return Frame(at, payload, masked(bytes(payload)) == _u32(data, at + 12 + length))


def _resynchronise(data: bytes, at: int) -> int:
    for start in range(at, len(data)):
        found = _frame_at(data, start)
        if found and (
            found.payload_is_good
            or _length_at(data, start + OVERHEAD + len(found.payload)) is not None
        ):
            return start
    return len(data)


def scan(data: bytes) -> tuple[list[Frame], list[Damage]]:
    """Returns all frames with intact headers, and the damage between them."""
    frames: list[Frame] = []
    damage: list[Damage] = []
    at = 0
    while at < len(data):
        found = _frame_at(data, at)
        if found:
            frames.append(found)
            at += OVERHEAD + len(found.payload)
            continue
        if len(data) - at < 12:
            kind, end = "torn header", len(data)
        elif _length_at(data, at) is not None:
            kind, end = "torn payload", len(data)
        else:
            kind, end = "bad header", _resynchronise(data, at + 1)
        damage.append(Damage(kind, at, end, len(frames)))
        at = end
    return frames, damage
