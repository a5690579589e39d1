"""A picture of the orders of epochs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy.typing as npt

from tfrfast.bench.svg import Svg

__all__ = ["Panel", "draw_orders"]

_MARGIN = 20.0
_SIDE = 300.0
_GAP = 26.0
_LEFT = 46.0  # for the axis of record numbers
_TOP = 104.0


class Panel(NamedTuple):
    """One scatter plot of an order: record number against position in the epoch."""

    title: str
    positions: npt.NDArray[Any]
    records: npt.NDArray[Any]
    num_records: int


def draw_orders(
    path: str | os.PathLike[str], title: str, subtitle: str, panels: Sequence[Panel]
) -> None:
    """Draws scatter plots side by side. A good shuffle shows an even cloud."""
    width = _LEFT + len(panels) * _SIDE + (len(panels) - 1) * _GAP + _MARGIN
    svg = Svg(width, _TOP + _SIDE + 54)
    svg.text(_MARGIN, 30, title, size=16, bold=True)
    svg.text(_MARGIN, 52, subtitle, colour="quiet")
    svg.text(_LEFT - 12, _TOP + _SIDE / 2, "record number", "middle", upward=True)
    for number, panel in enumerate(panels):
        x, scale = _LEFT + number * (_SIDE + _GAP), _SIDE / panel.num_records
        svg.text(x + _SIDE / 2, _TOP - 12, panel.title, "middle", bold=True)
        svg.frame(x, _TOP, _SIDE, _SIDE)
        svg.text(x, _TOP + _SIDE + 18, "0", colour="quiet")
        svg.text(x + _SIDE, _TOP + _SIDE + 18, f"{panel.num_records:,}", "end", colour="quiet")
        svg.text(x + _SIDE / 2, _TOP + _SIDE + 34, "position in the epoch", "middle")
        svg.dots(
            [
                (x + position * scale, _TOP + _SIDE - record * scale)
                for position, record in zip(
                    panel.positions.tolist(), panel.records.tolist(), strict=True
                )
            ],
            "series0",
            1.7,
        )
    svg.save(path)
