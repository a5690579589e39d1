"""What the threads of a Loader and its consumer did in some steps, and a picture of it."""

from __future__ import annotations

import html
import math
import os
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from tfrfast import _native
from tfrfast.base.refused_arguments import explains_arguments
from tfrfast.base.sizes import counted
from tfrfast.storage.paths import written_file

__all__ = ["Act", "Timeline"]

#: What a lane may show, and its colour.
_COLOURS = {
    "reading": "#4c9a8a",
    "decoding": "#2f6f8f",
    "transform": "#8a6fb0",
    "waiting": "#e6b8a2",
    "training": "#c9853c",
    "waiting for space": "#dfe3e6",
}
_CONSUMER = "consumer"
_WIDTH, _LANE, _LABEL, _TOP = 1100, 22, 130, 54
_LEAST_PIXELS = 0.4


class Act(NamedTuple):
    """A part of a step."""

    what: str
    """A key of the colours above."""
    lane: str
    begin: float
    """Seconds since the timeline began."""
    end: float


class Timeline:
    """What happened in some steps of a Loader, as `loader.timeline()` returns it.

        timeline = loader.timeline(steps=300)
        for batch in loader:
            train_step(batch)
        timeline.save("run.svg")

    A notebook shows the picture. `acts` are its bars: each worker's reading and decoding of each
    batch, each thread's calls of transform, and the consumer's waiting and training in turn. In a
    batch, reading and decoding alternate; its bar shows first all reading, then all decoding.
    """

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._noted: list[Act] = []  # appended by several threads
        self._batches: list[_native.TimedBatches] = []
        self._taken = 0
        self._left_ns = 0  # when the consumer took its last batch of this epoch
        self._began_ns = _native.now_ns()

    @property
    def is_on(self) -> bool:
        """True until all steps are noted."""
        return self._taken < self._steps

    @property
    def acts(self) -> list[Act]:
        """All bars of the picture, in the order of their beginnings."""
        found = list(self._noted)
        end = max((act.end for act in found if act.lane == _CONSUMER), default=0.0)
        for batches in self._batches:
            for worker, waited_from, begin, read, until in batches.times():
                lane = f"worker {worker}"
                if waited_from:
                    found.append(self._act("waiting for space", lane, waited_from, begin))
                found.append(self._act("reading", lane, begin, begin + read))
                found.append(self._act("decoding", lane, begin + read, until))
        return sorted(
            act._replace(begin=max(act.begin, 0.0), end=min(act.end, end))
            for act in found
            if act.begin < end and act.end > 0
        )

    @property
    def waited(self) -> float:
        """The share of the time that the consumer waited for batches; NaN without any step."""
        waiting, training = (
            sum(act.end - act.begin for act in list(self._noted) if act.what == what)
            for what in ("waiting", "training")
        )
        return waiting / (waiting + training) if waiting + training else math.nan

    def __str__(self) -> str:
        if not self._taken:
            return "No step was taken: a timeline takes effect with the next `for`."
        return (
            f"{counted(self._taken, 'steps')}: the consumer waited {self.waited:.0%} of the time, "
            f"and trained {1 - self.waited:.0%}."
        )

    def __repr__(self) -> str:
        return f"Timeline({self})"

    @explains_arguments
    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the picture as SVG."""
        with open(os.fsdecode(written_file(path)), "w", encoding="utf-8") as file:
            file.write(self._repr_svg_())

    def _repr_svg_(self) -> str:
        return _picture(str(self), self.acts)

    def _watch(self, core: _native.Loader) -> None:
        """Notes when the next batches of a native loader were made."""
        if self.is_on:
            self._batches.append(core.time_batches(self._steps - self._taken))

    def _taking(self, take: Callable[[], Any]) -> Any:
        """Takes a batch for the consumer, and notes how long it waited, and trained before."""
        if not self.is_on:
            return take()
        begin = _native.now_ns()
        if self._left_ns:
            self._noted.append(self._act("training", _CONSUMER, self._left_ns, begin))
        self._left_ns = 0
        batch = take()  # raises StopIteration at the end of an epoch
        end = _native.now_ns()
        self._noted.append(self._act("waiting", _CONSUMER, begin, end))
        self._left_ns = end
        self._taken += 1
        return batch

    def _transforming(self, work: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Returns the same work, which is noted."""

        def noted(batch: Any) -> Any:
            if not self.is_on:
                return work(batch)
            begin = _native.now_ns()
            result = work(batch)
            lane = threading.current_thread().name.replace("tfrfast_", "transform ")
            self._noted.append(self._act("transform", lane, begin, _native.now_ns()))
            return result

        return noted

    def _act(self, what: str, lane: str, begin: int, end: int) -> Act:
        return Act(what, lane, (begin - self._began_ns) / 1e9, (end - self._began_ns) / 1e9)


def _picture(title: str, acts: Iterable[Act]) -> str:
    lanes: dict[str, list[Act]] = defaultdict(list)
    for act in acts:
        lanes[act.lane].append(act)
    end = max((act.end for lane in lanes.values() for act in lane), default=0.0) or 1.0
    scale = (_WIDTH - _LABEL) / end
    height = _TOP + _LANE * len(lanes) + 24
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
        'font-family="system-ui, sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>',
        f'<text x="8" y="18" font-weight="600">{html.escape(title)}</text>',
    ]
    at = _LABEL
    for what, colour in _COLOURS.items():
        if any(act.what == what for lane in lanes.values() for act in lane):
            parts.append(f'<rect x="{at}" y="30" width="12" height="12" fill="{colour}"/>')
            parts.append(f'<text x="{at + 16}" y="40">{what}</text>')
            at += 28 + 7 * len(what)
    for row, name in enumerate(sorted(lanes, key=lambda name: (name != _CONSUMER, name))):
        top = _TOP + _LANE * row
        parts.append(f'<text x="8" y="{top + 15}">{html.escape(name)}</text>')
        parts += _bars(lanes[name], top, scale)
    parts.append(f'<text x="{_LABEL}" y="{height - 6}">0 s</text>')
    parts.append(f'<text x="{_WIDTH - 4}" y="{height - 6}" text-anchor="end">{end:.3g} s</text>')
    return "\n".join([*parts, "</svg>\n"])


def _bars(lane: list[Act], top: int, scale: float) -> Iterable[str]:
    """Yields the bars of a lane. Those too short to be seen are left out."""
    for act in lane:
        if (width := (act.end - act.begin) * scale) < _LEAST_PIXELS:
            continue
        ms = 1000 * (act.end - act.begin)
        yield (
            f'<rect x="{_LABEL + act.begin * scale:.2f}" y="{top + 2}" width="{width:.2f}" '
            f'height="{_LANE - 4}" fill="{_COLOURS[act.what]}"><title>{act.what}: {ms:.2f} ms'
            "</title></rect>"
        )
