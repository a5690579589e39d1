"""The size of records, estimated from the first few. Only speed depends on the estimate."""

from __future__ import annotations

import os
import stat
import struct
import zlib
from collections.abc import Sequence

from tfrfast.base.codecs import CODECS

_FILES = 16
_SAMPLE_BYTES = 64 << 10
_HEADER = struct.Struct("<QI")  # the payload's length and its checksum
_FRAME_BYTES = _HEADER.size + 4


def mean_record_bytes(paths: Sequence[bytes], compression: str = "") -> int | None:
    """Returns the mean size of the first records of the first file that has some; None if none of
    the first files has records that can be read.
    """
    sizes = (_of_file(path, compression) for path in paths[:_FILES])
    return next((size for size in sizes if size is not None), None)


def _of_file(path: bytes, compression: str) -> int | None:
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # opening a pipe would wait for a writer
            return None
        with open(path, "rb") as file:
            sample = file.read(_SAMPLE_BYTES)
        if compression:
            inflating = zlib.decompressobj(CODECS[compression].window_bits)
            sample = inflating.decompress(sample, _SAMPLE_BYTES)
    except (OSError, ValueError, zlib.error):
        return None
    at = count = payload_bytes = 0
    while at + _HEADER.size <= len(sample):
        (length, _) = _HEADER.unpack_from(sample, at)
        at += _FRAME_BYTES + length
        count, payload_bytes = count + 1, payload_bytes + length
    return payload_bytes // count if count else None
