"""What a road is: a way from shards, or from records in memory, to records."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tfrfast as tfr
from truth import Item, Total

#: What a road has. Attacks name what they need, and what they spare.
READS = "reads"  # shards from files
SERVED = "served"  # reads them from a server instead
CACHED = "cached"  # through a DiskCache
WRITES = "writes"  # records of the attack, to new shards
PUBLISHES = "publishes"  # new files, whole or not at all
SKIPS = "skips"  # has on_corruption="skip"
ORDERED = "ordered"  # returns records in the order of the files
HEADERS = "headers"  # looks at the headers of records alone
PICTURES = "pictures"  # decodes the feature "picture"
COMMAND = "command"  # is a process of its own, and run within this one
ARROW = "arrow"  # runs PyArrow, which ends the process when memory runs out
FRAMEWORK = "framework"  # runs in a framework, which takes seconds to import
CHAINS = "chains"  # is a dataset whose methods are TensorFlow's
TENSORFLOW = "tensorflow"  # has TensorFlow's runtime, which is not ours to attack

FEATURES = {"id": tfr.FixedLen((), "int64"), "text": tfr.FixedLen((), "bytes")}


@dataclass
class Task:
    """What an attack gives a road."""

    #: Shards, or their URLs.
    paths: list[str]
    #: A folder of the road's own, where it writes.
    folder: Path
    chosen: random.Random
    #: Arguments of a Reader: index, on_corruption.
    options: dict[str, Any] = field(default_factory=dict)
    #: What a road that writes has to write.
    records: list[Any] = field(default_factory=list)
    #: Of the shards, for roads that do not recognise it.
    compression: str | None = None

    @property
    def skips(self) -> bool:
        return self.options.get("on_corruption") == "skip"


@dataclass
class Opened:
    """A road on its way. Each call of `epoch` reads everything again."""

    epoch: Callable[[], Iterable[Item | Total]]
    #: Whether the road has said that it skipped damage. None if it cannot say so.
    has_reported: Callable[[], bool] | None = None


@dataclass(frozen=True)
class Road:
    name: str
    open: Callable[[Task], Opened]
    has: frozenset[str]
    #: The packages that it needs.
    needs: tuple[str, ...] = ()
