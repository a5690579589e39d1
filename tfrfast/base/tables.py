"""Tables for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tfrfast._native import printable


def format_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Lines with columns as wide as their content. Numbers are aligned to the right.

    A cell may hold what a stranger wrote: what cannot be printed is shown as an escape.
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


def _text(cell: object) -> str:
    return f"{cell:,}" if type(cell) is int else printable(str(cell))
