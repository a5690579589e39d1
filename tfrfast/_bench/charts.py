"""Two kinds of picture, as SVG: any browser shows it, and writing it takes no library."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

import numpy.typing as npt

_INK, _FAINT, _COLOURS = "#222222", "#c8c8c8", ("#20506e", "#d98032", "#4f8a4c", "#8f4f8a")
_SIZE = 13  # of text
_LINE = 20  # from one bar to the next
_GAP = 8  # extra, between groups of bars


class Bar(NamedTuple):
    """A ratio of speeds; `low` to `high` is its range over the rounds."""

    label: str
    series: str
    ratio: float
    low: float
    high: float


class Panel(NamedTuple):
    """One scatter plot of an order: record number against position in the epoch."""

    title: str
    positions: npt.NDArray[Any]
    records: npt.NDArray[Any]
    num_records: int


class Svg:
    def __init__(self, width: float, height: float) -> None:
        self._size = (width, height)
        self._parts: list[str] = []

    def text(
        self, x: float, y: float, text: str, anchor: str = "start", bold: bool = False
    ) -> None:
        weight = ' font-weight="bold"' if bold else ""
        self._parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{weight}>{escape(text)}</text>'
        )

    def rectangle(self, x: float, y: float, width: float, height: float, fill: str) -> None:
        self._parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
            f'fill="{fill}"/>'
        )

    def frame(self, x: float, y: float, side: float) -> None:
        self._parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{side:.1f}" height="{side:.1f}" fill="none" '
            f'stroke="{_FAINT}"/>'
        )

    def line(self, x1: float, y1: float, x2: float, y2: float, colour: str) -> None:
        self._parts.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'
        )

    def dots(self, points: Sequence[tuple[float, float]], colour: str) -> None:
        path = "".join(f"M{x:.1f} {y:.1f}h0" for x, y in points)
        self._parts.append(
            f'<path d="{path}" stroke="{colour}" stroke-width="1.6" stroke-linecap="round"/>'
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        width, height = self._size
        with open(path, "w", encoding="utf-8") as file:
            file.write(
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
                f'width="{width:.0f}" height="{height:.0f}" font-family="sans-serif" '
                f'font-size="{_SIZE}" fill="{_INK}">\n'
                f'<rect width="100%" height="100%" fill="white"/>\n'
            )
            file.write("\n".join(self._parts) + "\n</svg>\n")


def draw_ratios(path: str | os.PathLike[str], title: str, bars: Sequence[Bar]) -> None:
    """Draws bars from 1 outwards on a logarithmic axis: slower to the left, faster to the right."""
    series = list(dict.fromkeys(bar.series for bar in bars))
    left, width, top = 240.0, 520.0, 66.0
    lowest = min(0.5, *(bar.low for bar in bars))
    highest = max(2.0, *(bar.high for bar in bars)) * 1.6  # room for the figure after the bar

    def x_of(ratio: float) -> float:
        share = math.log(max(ratio, lowest) / lowest) / math.log(highest / lowest)
        return left + width * share

    labels = list(dict.fromkeys(bar.label for bar in bars))
    bottom = top + _LINE * len(bars) + _GAP * (len(labels) - 1)
    svg = Svg(left + width + 20, bottom + 34)
    svg.text(12, 24, title, bold=True)
    for number, name in enumerate(series):
        svg.rectangle(12 + 190 * number, 37, 12, 12, _COLOURS[number % len(_COLOURS)])
        svg.text(30 + 190 * number, 48, name)
    for power in range(math.ceil(math.log2(lowest)), math.floor(math.log2(highest)) + 1):
        x = x_of(2.0**power)
        svg.line(x, top - 6, x, bottom, _INK if power == 0 else _FAINT)
        svg.text(x, bottom + 18, f"{2.0**power:g} x", "middle")
    named: set[str] = set()
    for number, bar in enumerate(bars):
        y = top + _LINE * number + _GAP * labels.index(bar.label)
        if bar.label not in named:
            named.add(bar.label)
            svg.text(left - 10, y + _LINE / 2 + 3, bar.label, "end")
        begin, end = sorted((x_of(1), x_of(bar.ratio)))
        colour = _COLOURS[series.index(bar.series) % len(_COLOURS)]
        middle = y + _LINE / 2 - 1
        svg.rectangle(begin, y + 2, max(end - begin, 1), _LINE - 6, colour)
        svg.line(x_of(bar.low), middle, x_of(bar.high), middle, _INK)
        svg.text(max(x_of(bar.high), x_of(1)) + 6, middle + 4, f"{bar.ratio:.1f}")
    svg.save(path)


def draw_orders(path: str | os.PathLike[str], panels: Sequence[Panel]) -> None:
    """Draws scatter plots side by side. A good shuffle shows an even cloud."""
    side, gap, top = 340.0, 64.0, 40.0
    svg = Svg(gap + len(panels) * (side + gap), top + side + 44)
    for number, panel in enumerate(panels):
        x, scale = gap + number * (side + gap), side / panel.num_records
        svg.text(x + side / 2, top - 12, panel.title, "middle", bold=True)
        svg.frame(x, top, side)
        svg.text(x + side / 2, top + side + 34, "position in the epoch", "middle")
        svg.text(x, top + side + 17, "0")
        svg.text(x + side, top + side + 17, f"{panel.num_records:,}", "end")
        svg.text(x - 8, top + side, "0", "end")
        svg.text(x - 8, top + side / 2, "record", "end")
        svg.dots(
            [
                (x + position * scale, top + side - record * scale)
                for position, record in zip(
                    panel.positions.tolist(), panel.records.tolist(), strict=True
                )
            ],
            _COLOURS[0],
        )
    svg.save(path)
