"""Tables for a terminal and for a notebook."""

from __future__ import annotations

import html
import os
import reprlib
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

from tfrfast._native import printable

_LEAST_WIDTH = 8
_LONGEST_NUMBER = 24


def terminal_width(stream: TextIO | None) -> int | None:
    """Returns the width of the terminal behind a stream; None if it is not a terminal."""
    try:
        return None if stream is None else os.get_terminal_size(stream.fileno()).columns or None
    except (OSError, ValueError):  # not a terminal, or closed
        return None


def format_table(
    header: Sequence[str], rows: Iterable[Sequence[object]], width: int | None = None
) -> list[str]:
    """Returns lines with columns as wide as their content. Numbers are aligned to the right.

    With `width`, the widest columns of text are cut in the middle until a line fits. A cell may
    hold untrusted text: unprintable characters are shown as escapes.
    """
    lines = [[_text(cell) for cell in row] for row in rows]
    widths = [max(len(line[i]) for line in [list(header), *lines]) for i in range(len(header))]
    numeric = [all(_begins_as_number(line[i]) for line in lines) for i in range(len(header))]
    if width is not None:
        widths = [min(each, max(width, _LEAST_WIDTH)) for each in widths]
    excess = 0 if width is None else sum(widths) + 2 * (len(widths) - 1) - width
    is_kept = [each and size <= _LONGEST_NUMBER for each, size in zip(numeric, widths, strict=True)]
    while excess > 0:
        wide = max(range(len(widths)), key=lambda i: -1 if is_kept[i] else widths[i])
        if is_kept[wide] or widths[wide] <= _LEAST_WIDTH:
            break
        widths[wide] -= 1
        excess -= 1
    return [
        "  ".join(
            _cut(cell, size).rjust(size) if right else _cut(cell, size).ljust(size)
            for cell, size, right in zip(line, widths, numeric, strict=True)
        ).rstrip()
        for line in [list(header), *lines]
    ]


def _begins_as_number(cell: str) -> bool:
    return cell.removeprefix("-")[:1].isdigit()


def _cut(text: str, width: int) -> str:
    if len(text) <= width:
        return text
    end = (width - 3) // 2
    return f"{text[: width - 3 - end]}...{text[len(text) - end :]}"


def html_table(title: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Returns the table for a notebook. Untrusted text in a cell stays text."""
    lines = ["".join(f"<th>{html.escape(each)}</th>" for each in header)]
    lines += ["".join(f"<td>{_markup(cell)}</td>" for cell in row) for row in rows]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<p>{html.escape(title)}</p><table>{body}</table>"


def summary(result: tuple[Any, ...]) -> str:
    """Returns the repr of a NamedTuple, with the first item of each list, and their number."""
    names: Sequence[str] = getattr(result, "_fields", ())
    parts = [f"{name}={_first_of(value)}" for name, value in zip(names, result, strict=True)]
    return f"{type(result).__name__}({', '.join(parts)})"


def _first_of(value: object) -> str:
    if isinstance(value, list) and len(value) > 1:
        return f"[{value[0]!r}, ... {len(value) - 1:,} more]"
    return reprlib.repr(value) if isinstance(value, dict) else repr(value)


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
