"""A progress bar on stderr, for work that takes more than a moment."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from tfrfast.base.sizes import format_bytes
from tfrfast.base.tables import terminal_width

_PATIENCE_S = 1.0
_REDRAW_S = 0.1
_BAR_CELLS = 30
_LEAST_CELLS = 5


class ProgressBar:
    """Draws `done` of `total` bytes. By default appears only on a terminal, after a second.

    `show` forces the bar with True and hides it with False. `unit` names the counted things, if not
    bytes. Use the bar as a context manager, which finishes the line at the end.
    """

    def __init__(self, label: str, show: bool | None = None, unit: str | None = None) -> None:
        self._label = label
        self._unit = unit
        self._enabled = sys.stderr.isatty() if show is None else show
        self._started = time.monotonic()
        self._next_draw = self._started + (0.0 if show else _PATIENCE_S)
        self._drawn = False

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._drawn:
            sys.stderr.write("\n")
            sys.stderr.flush()

    def update(self, done: int, total: int) -> None:
        now = time.monotonic()
        finished = done >= total
        if not self._enabled or (now < self._next_draw and not (finished and self._drawn)):
            return
        self._next_draw = now + _REDRAW_S
        self._drawn = True
        share = done / total if total else 1.0
        elapsed = now - self._started
        rate = done / elapsed if elapsed > 0 else 0.0
        left = f"{(total - done) / rate:4.0f} s left" if rate > 0 else ""
        text = f" {share:4.0%}  {self._amounts(done, total, rate)}  {left}"
        width = terminal_width(sys.stderr)
        # The last column stays free: a terminal may begin a new line after it.
        room = _BAR_CELLS if width is None else width - 4 - len(self._label) - len(text)
        bar_cells = min(_BAR_CELLS, room)
        if bar_cells >= _LEAST_CELLS:
            filled = round(share * bar_cells)
            text = f" [{'#' * filled}{'.' * (bar_cells - filled)}]{text}"
        line = f"{self._label}{text}"
        sys.stderr.write(f"\r{line if width is None else line[: width - 1]}\033[K")
        sys.stderr.flush()

    def adding(self, total: int) -> Callable[[int], None]:
        """Returns a function that adds to the amount done. For one thread at a time."""
        done = 0

        def advance(newly: int) -> None:
            nonlocal done
            done += newly
            self.update(done, total)

        return advance

    def _amounts(self, done: int, total: int, rate: float) -> str:
        if self._unit is not None:
            return f"{done:,} of {total:,} {self._unit}"
        return f"{format_bytes(done)} of {format_bytes(total)}  {format_bytes(rate)}/s"
