"""Pictures of decoded columns, for notebooks and pages."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

import numpy as np

__all__ = ["data_url", "is_picture", "png_of", "thumbnail"]

_SIDE = 96
#: PNG's colour types by the number of channels.
_COLOURS = {1: 0, 2: 4, 3: 2, 4: 6}


def is_picture(array: Any) -> bool:
    """True for an array of bytes with a height, a width and one to four channels."""
    return (
        isinstance(array, np.ndarray)
        and array.dtype == np.uint8
        and array.ndim == 3
        and array.shape[2] in _COLOURS
        and 0 not in array.shape
    )


def png_of(picture: Any) -> bytes:
    """Returns a picture as PNG."""
    height, width, channels = picture.shape
    header = struct.pack(">IIBBBBB", width, height, 8, _COLOURS[channels], 0, 0, 0)
    lines = np.zeros((height, 1 + width * channels), np.uint8)  # each begins with its filter: none
    lines[:, 1:] = picture.reshape(height, -1)
    chunks = (b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 1)), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*chunk) for chunk in chunks)


def _chunk(name: bytes, content: bytes) -> bytes:
    checksum = zlib.crc32(name + content)
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", checksum)


def thumbnail(picture: Any) -> str:
    """Returns a small picture as a URL that holds it. Pixels are left out, not averaged."""
    step = max(1, -(-max(picture.shape[:2]) // _SIDE))
    return data_url("image/png", png_of(picture[::step, ::step]))


def data_url(mime: str, content: bytes) -> str:
    return f"data:{mime};base64,{base64.b64encode(content).decode()}"
