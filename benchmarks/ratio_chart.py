"""A picture of ratios of speeds."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from benchmarks.svg import Colour, Svg, text_width

__all__ = ["Bar", "draw_ratios"]

_COLOURS: tuple[Colour, ...] = ("series0", "series1", "series2", "series3")
_MARGIN = 20.0
_PLOT = 520.0  # width
_BAR = 13.0  # height
_STEP = 17.0  # between two bars of a label
_LABEL_GAP = 9.0
_HEADING = 28.0


class Bar(NamedTuple):
    """A ratio of speeds; `low` to `high` is its range over the rounds."""

    group: str
    label: str
    series: str
    ratio: float
    low: float
    high: float


def draw_ratios(
    path: str | os.PathLike[str],
    title: str,
    baseline: str,
    bars: Sequence[Bar],
    notes: Sequence[str] = (),
) -> None:
    """Draws bars from 1 outwards on a logarithmic axis: slower to the left, faster to the right.

    Bars of a group stand together, under the group's name. `baseline` names the contender with
    ratio 1. `notes` go below the axis, after a line that explains the whiskers.
    """
    groups = [(name, list(each)) for name, each in groupby(bars, key=lambda bar: bar.group)]
    labels = [len({bar.label for bar in each}) for _, each in groups]
    left = _MARGIN + max(text_width(bar.label) for bar in bars) + 12
    top = 84.0
    bottom = top + _STEP * len(bars) + sum(_HEADING + _LABEL_GAP * count for count in labels)
    notes = ("Bars: median of the rounds. Whiskers: from the slowest to the fastest.", *notes)
    axis = _Axis(bars, left)
    # Values stand after the bars, and may use the right margin.
    svg = Svg(left + _PLOT + _MARGIN + 28, bottom + 56 + 17 * len(notes) + 4)
    svg.text(_MARGIN, 30, title, size=16, bold=True)
    series = list(dict.fromkeys(bar.series for bar in bars))
    x = _MARGIN
    for number, name in enumerate(series):
        svg.rectangle(x, 47, 12, 12, _COLOURS[number % len(_COLOURS)], round=2)
        svg.text(x + 18, 57.5, name)
        x += 18 + text_width(name) + 26
    for ratio in axis.ticks():
        svg.line(axis.x(ratio), top, axis.x(ratio), bottom, "faint")
        svg.text(axis.x(ratio), bottom + 18, _as_text(ratio), "middle", colour="quiet")
    svg.text(
        left + _PLOT / 2, bottom + 37, f"times the speed of {baseline} (logarithmic)", "middle"
    )
    y = top
    for name, each in groups:
        svg.text(_MARGIN, y + 19, name, bold=True)
        y += _HEADING
        for label, rows in groupby(each, key=lambda bar: bar.label):
            y = _draw_label(svg, axis, label, list(rows), series, left, y) + _LABEL_GAP
    svg.line(axis.x(1), top, axis.x(1), bottom, "ink", 1.2)
    for number, note in enumerate(notes):
        svg.text(_MARGIN, bottom + 62 + 17 * number, note, size=11.5, colour="quiet")
    svg.save(path)


class _Axis:
    def __init__(self, bars: Sequence[Bar], left: float) -> None:
        lowest = min(bar.low for bar in bars)
        # Space for a figure beyond the bars, on the left only if some bars go left.
        self._low = math.log2(lowest) - 0.45 if lowest < 0.95 else -0.12
        self._high = math.log2(max(2.0, *(bar.high for bar in bars)))
        self._left = left

    def x(self, ratio: float) -> float:
        share = (math.log2(ratio) - self._low) / (self._high - self._low)
        return self._left + _PLOT * min(max(share, 0.0), 1.0)

    def ticks(self) -> list[float]:
        return [2.0**power for power in range(math.ceil(self._low), math.floor(self._high) + 1)]


def _draw_label(
    svg: Svg, axis: _Axis, label: str, bars: list[Bar], series: list[str], left: float, y: float
) -> float:
    """Draws the bars of a label from `y` down. Returns where they end."""
    svg.text(left - 12, y + _STEP * len(bars) / 2 + 3, label, "end")
    for bar in bars:
        begin, end = sorted((axis.x(1), axis.x(bar.ratio)))
        colour = _COLOURS[series.index(bar.series) % len(_COLOURS)]
        svg.rectangle(begin, y, max(end - begin, 1), _BAR, colour)
        low, high, middle = axis.x(bar.low), axis.x(bar.high), y + _BAR / 2
        # A halo keeps the line readable on the bar.
        for paint, width in (("paper", 3.2), ("ink", 1.2)):
            pen: Colour = "paper" if paint == "paper" else "ink"
            svg.line(low, middle, high, middle, pen, width)
            for end_of in (low, high):
                svg.line(end_of, middle - 3.5, end_of, middle + 3.5, pen, width)
        if bar.ratio < 1:
            svg.text(min(low, begin) - 6, y + _BAR - 2, f"{bar.ratio:.1f}", "end")
        else:
            svg.text(max(high, end) + 6, y + _BAR - 2, f"{bar.ratio:.1f}")
        y += _STEP
    return y


def _as_text(ratio: float) -> str:
    return f"{ratio:g}" if ratio >= 1 else f"1/{1 / ratio:g}"
