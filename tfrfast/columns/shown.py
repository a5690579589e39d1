"""What notebooks and pages show of columns: the first rows, and pictures."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tfrfast.base.contents import contents_of
from tfrfast.base.tables import Markup, html_table, shortened
from tfrfast.columns.sparse import Sparse
from tfrfast.columns.strings import Bytes

__all__ = ["ROWS_SHOWN", "html_columns", "is_picture", "png_of", "shown_bytes"]

ROWS_SHOWN = 3
#: A larger encoded picture is only described: the page of a notebook keeps its bytes.
_MOST_BYTES = 128 << 10
_SIDE = 96
#: PNG's colour types by the number of channels.
_COLOURS = {1: 0, 2: 4, 3: 2, 4: 6}
_SHOWN_BY_BROWSERS = ("image/jpeg", "image/png", "image/gif", "image/bmp", "image/webp")


def html_columns(title: str, columns: Mapping[str, Any], rows: Sequence[object]) -> str:
    """Returns a table with a line for each column, and a cell for each of its first rows."""
    shown = rows[:ROWS_SHOWN]
    return html_table(
        title,
        ["column", "type", "shape", *(f"row {row}" for row in shown)],
        [
            (
                name,
                f"{type(column).__name__} {getattr(column, 'dtype', '')}".strip(),
                "x".join(map(str, getattr(column, "shape", ()))),
                *(_cell(column, at) for at in range(len(shown))),
            )
            for name, column in columns.items()
        ],
    )


def _cell(column: Any, at: int) -> object:
    if isinstance(column, Sparse) or at >= len(column):  # there may be fewer packs than records
        return ""
    value = column[at]
    if is_picture(value):
        return _picture(_thumbnail(value), "x".join(map(str, value.shape)))
    if isinstance(value, Bytes) and len(value) == 1:
        value = value[0]
    if isinstance(value, bytes):
        return shown_bytes(value)
    return shortened(value.tolist() if hasattr(value, "tolist") else value)


def shown_bytes(value: bytes) -> object:
    """Returns a byte string's picture, or what it holds, or its beginning."""
    contents = contents_of(value)
    if contents.mime in _SHOWN_BY_BROWSERS and len(value) <= _MOST_BYTES:
        return _picture(_data_url(contents.mime, value), contents.described(len(value)))
    return contents.described(len(value)) or shortened(value)


def _picture(url: str, title: str) -> Markup:
    return Markup(f'<img src="{url}" title="{title}" style="max-height: 96px">')


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


def _thumbnail(picture: Any) -> str:
    """Returns a small picture as a URL that holds it. Pixels are left out, not averaged."""
    step = max(1, -(-max(picture.shape[:2]) // _SIDE))
    return _data_url("image/png", png_of(picture[::step, ::step]))


def _data_url(mime: str, content: bytes) -> str:
    return f"data:{mime};base64,{base64.b64encode(content).decode()}"
