"""The first rows of columns for a notebook, with pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tfrfast.base.contents import contents_of
from tfrfast.base.tables import Markup, html_table, shortened
from tfrfast.columns.sparse import Sparse
from tfrfast.columns.strings import Bytes
from tfrfast.columns.thumbnails import data_url, is_picture, thumbnail

__all__ = ["ROWS_SHOWN", "html_columns", "shown_bytes"]

ROWS_SHOWN = 3
#: A larger encoded picture is only described: the page of a notebook keeps its bytes.
_MOST_BYTES = 128 << 10
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
    if isinstance(column, Sparse):
        return ""
    value = column[at]
    if is_picture(value):
        return _picture(thumbnail(value), "x".join(map(str, value.shape)))
    if isinstance(value, Bytes) and len(value) == 1:
        value = value[0]
    if isinstance(value, bytes):
        return shown_bytes(value)
    return shortened(value.tolist() if hasattr(value, "tolist") else value)


def shown_bytes(value: bytes) -> object:
    """Returns a byte string's picture, or what it holds, or its beginning."""
    contents = contents_of(value)
    if contents.mime in _SHOWN_BY_BROWSERS and len(value) <= _MOST_BYTES:
        return _picture(data_url(contents.mime, value), contents.described(len(value)))
    return contents.described(len(value)) or shortened(value)


def _picture(url: str, title: str) -> Markup:
    return Markup(f'<img src="{url}" title="{title}" style="max-height: 96px">')
