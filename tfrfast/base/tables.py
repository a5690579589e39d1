"""Tables for a terminal and for a notebook."""

from __future__ import annotations

import html
import reprlib
from collections.abc import Iterable, Sequence

from tfrfast._native import printable


def format_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Returns lines with columns as wide as their content. Numbers are aligned to the right.

    A cell may hold untrusted text: unprintable characters are shown as escapes.
    """
    lines = [[_text(cell) for cell in row] for row in rows]
    widths = [max(len(line[i]) for line in [list(header), *lines]) for i in range(len(header))]
    numeric = [all(line[i][:1].isdigit() for line in lines) for i in range(len(header))]
    return [
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, numeric, strict=True)
        ).rstrip()
        for line in [list(header), *lines]
    ]


def html_table(title: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Returns the table for a notebook. Untrusted text in a cell stays text."""
    lines = ["".join(f"<th>{html.escape(each)}</th>" for each in header)]
    lines += ["".join(f"<td>{_markup(cell)}</td>" for cell in row) for row in rows]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<p>{html.escape(title)}</p><table>{body}</table>"


class Markup(str):
    """A cell that is HTML already."""

    __slots__ = ()


def shortened(value: object) -> str:
    """Returns the value's repr, cut to 60 characters."""
    text = reprlib.repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _markup(cell: object) -> str:
    return cell if isinstance(cell, Markup) else html.escape(_text(cell))


def _text(cell: object) -> str:
    return f"{cell:,}" if type(cell) is int else printable(str(cell))
