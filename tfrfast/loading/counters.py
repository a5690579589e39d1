"""Counters of batches that a framework reads by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

__all__ = ["Counters"]


@dataclass
class Counters:
    """What a framework that reads a Loader's plan by itself adds to the Loader's stats."""

    #: By the encoded plan: returns the records, bytes and batches that were read so far.
    read: dict[bytes, Callable[[], dict[str, int]]] = field(default_factory=dict)
    consumer_waited_s: float = 0.0
