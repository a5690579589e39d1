"""Warns, once in a process, if a pipeline is slower or less exact than necessary."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from tfrfast.base.warning import warn
from tfrfast.errors import SlowPathWarning
from tfrfast.tensorflow.history import Refusal

_told: set[str] = set()


def warn_once(
    kind: Literal["function", "names", "parse", "shuffle"], what: str, refusal: Refusal
) -> None:
    """Warns the first time for each kind, at the user's line."""
    if kind in _told:
        return
    _told.add(kind)
    instead = f" Instead: {refusal.instead}." if refusal.instead else ""
    warn(
        f"{what}: {refusal.why}.{instead} tfr.explain(dataset) shows the treatment of each call. "
        'Warned once; warnings.simplefilter("ignore", tfr.SlowPathWarning) silences it.',
        SlowPathWarning,
    )


def warn_of(
    kind: Literal["inflating", "requests", "seeks"], cost: Callable[[], str | None]
) -> None:
    """Warns once of a cost of an exact shuffle, if it matters. `cost` may measure reads."""
    text = None if kind in _told else cost()
    if text is not None:
        _told.add(kind)
        warn(text, SlowPathWarning)
