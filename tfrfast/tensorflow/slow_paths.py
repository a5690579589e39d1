"""Warns, once in a process, if a pipeline is slower or less exact than necessary."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from tfrfast.base.warning import warn
from tfrfast.errors import SlowPathWarning
from tfrfast.loading.remote_records import RemoteRecords
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


def warn_of_requests(remote: RemoteRecords | None) -> None:
    """Warns once that an exact shuffle of small records makes a request for each record."""
    if remote is None or "requests" in _told:
        return
    _warn_of(remote.cost("shuffle(order=tfr.BlockShuffle(...))", "dataset"), "requests")


def warn_of_inflating(cost: str | None) -> None:
    """Says once that an exact shuffle inflates much more than the data."""
    _warn_of(cost, "inflating")


def warn_of_seeks(measure: Callable[[], str | None]) -> None:
    """Says once that an exact shuffle is slow because of the storage."""
    if "seeks" not in _told:
        _warn_of(measure(), "seeks")


def _warn_of(cost: str | None, kind: str) -> None:
    if cost is not None and kind not in _told:
        _told.add(kind)
        warn(cost, SlowPathWarning)
