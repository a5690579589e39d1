"""Draws SVG without a plotting library. A browser shows the drawing in light or dark, as its user
prefers.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from html import escape
from typing import Literal

__all__ = ["Colour", "Svg", "text_width"]

# A name for each role of a colour. `_COLOURS` has its colour in light and in dark drawings.
Colour = Literal["ink", "quiet", "faint", "paper", "series0", "series1", "series2", "series3"]
_COLOURS: dict[Colour, tuple[str, str]] = {
    "ink": ("#1c1f23", "#e8eaed"),
    "quiet": ("#5a636e", "#a3acb8"),
    "faint": ("#d5d9de", "#3b424b"),
    "paper": ("#ffffff", "#15181c"),
    "series0": ("#2f7cab", "#5aa9dc"),
    "series1": ("#d9822b", "#eca255"),
    "series2": ("#4f8a4c", "#7dbb79"),
    "series3": ("#8f4f8a", "#c888c2"),
}
_FONT = "system-ui, -apple-system, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"
_SIZE = 13  # of text


def text_width(text: str, size: float = _SIZE) -> float:
    """Returns the approximate width of a text in any of the fonts."""
    return 0.56 * size * len(text)


class Svg:
    """A drawing. Later calls draw over earlier calls."""

    def __init__(self, width: float, height: float) -> None:
        self._size = (width, height)
        self._parts: list[str] = []

    def text(
        self,
        x: float,
        y: float,
        text: str,
        anchor: Literal["start", "middle", "end"] = "start",
        *,
        colour: Colour = "ink",
        size: float = _SIZE,
        bold: bool = False,
        upward: bool = False,
    ) -> None:
        """Draws a line of text with its baseline at `y`. `upward` makes the text go upwards."""
        more = ' font-weight="600"' if bold else ""
        more += f' font-size="{size:g}"' if size != _SIZE else ""
        more += f' transform="rotate(-90 {x:.1f} {y:.1f})"' if upward else ""
        self._parts.append(
            f'<text class="{colour}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>'
            f"{escape(text)}</text>"
        )

    def rectangle(
        self, x: float, y: float, width: float, height: float, colour: Colour, round: float = 0
    ) -> None:
        corners = f' rx="{round:g}"' if round else ""
        self._parts.append(
            f'<rect class="{colour}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" '
            f'height="{height:.1f}"{corners}/>'
        )

    def frame(self, x: float, y: float, width: float, height: float) -> None:
        self._parts.append(
            f'<rect class="frame" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" '
            f'height="{height:.1f}"/>'
        )

    def line(
        self, x1: float, y1: float, x2: float, y2: float, colour: Colour, width: float = 1
    ) -> None:
        self._parts.append(
            f'<line class="line-{colour}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
            f'stroke-width="{width:g}"/>'
        )

    def dots(self, points: Sequence[tuple[float, float]], colour: Colour, size: float) -> None:
        path = "".join(f"M{x:.1f} {y:.1f}h0" for x, y in points)
        self._parts.append(
            f'<path class="line-{colour}" d="{path}" stroke-width="{size:g}" '
            'stroke-linecap="round"/>'
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        width, height = self._size
        with open(path, "w", encoding="utf-8") as file:
            file.write(
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
                f'width="{width:.0f}" height="{height:.0f}" font-family="{_FONT}" '
                f'font-size="{_SIZE}">\n<style>\n{_style(0)}'
                f"@media (prefers-color-scheme: dark) {{\n{_style(1)}}}\n</style>\n"
                f'<rect class="paper" width="100%" height="100%"/>\n'
            )
            file.write("\n".join(self._parts) + "\n</svg>\n")


def _style(scheme: Literal[0, 1]) -> str:
    rules = [
        f".{name} {{ fill: {both[scheme]} }} "
        f".line-{name} {{ stroke: {both[scheme]}; fill: none }}\n"
        for name, both in _COLOURS.items()
    ]
    return "".join(rules) + f".frame {{ stroke: {_COLOURS['quiet'][scheme]}; fill: none }}\n"
