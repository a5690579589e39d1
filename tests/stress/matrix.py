"""The roads and the attacks, and which attack goes with which road.

A new road is a line of a list of roads. A new attack is a line of ATTACKS.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass

import chains
import changes
import damage
import disturbances
import failures
import job_roads
import links
import reading_roads
import tf_data_roads
import writing_roads
from road import (
    ARROW,
    CACHED,
    CHAINS,
    COMMAND,
    FRAMEWORK,
    HEADERS,
    READS,
    SERVED,
    TENSORFLOW,
    Road,
)
from scene import Scene


@dataclass(frozen=True)
class Attack:
    name: str
    run: Callable[[Scene], None]
    #: What a road must have, and what it must not have.
    needs: frozenset[str] = frozenset()
    spares: frozenset[str] = frozenset()

    def fits(self, road: Road) -> bool:
        return self.needs <= road.has and not self.spares & road.has


def _set(*names: str) -> frozenset[str]:
    return frozenset(names)


ROADS: list[Road] = [
    *reading_roads.ROADS, *tf_data_roads.ROADS, *job_roads.ROADS, *writing_roads.ROADS,
]  # fmt: skip

ATTACKS: list[Attack] = [
    Attack("changes", changes.attack, _set(READS)),
    Attack("damage", damage.attack, _set(READS), _set(HEADERS)),
    Attack("forks", disturbances.forks, spares=_set(FRAMEWORK)),
    Attack("kills", disturbances.kills),
    Attack("signals", disturbances.signals, spares=_set(COMMAND)),
    Attack("exits", disturbances.exits, spares=_set(TENSORFLOW)),
    Attack("threads", disturbances.threads, spares=_set(COMMAND)),
    Attack("calls", failures.calls),
    # TensorFlow itself ends the process where its source of random numbers cannot be opened.
    Attack("limits", failures.limits, spares=_set(TENSORFLOW)),
    Attack("memory", failures.memory, spares=_set(FRAMEWORK, ARROW, SERVED)),
    Attack("links", links.slow, _set(SERVED)),
    Attack("caches", links.damaged_cache, _set(CACHED)),
    Attack("chains", chains.attack, _set(CHAINS)),
]

#: Cells that are known to fail, each with the reason. They run, and their failures are counted.
KNOWN: dict[tuple[str, str], str] = {
    ("changes", "Steps"): "a shard with its old size and time looks as before to a step file, so a "
    "new run says that a step is corrupt, where the step file is of the old shard",
    (
        "exits",
        "tfrfast copy",
    ): "DuckDB ends a process that exits while a thread is in a query, also without tfrfast",
    (
        "limits",
        "tfrfast copy",
    ): "libraries of PyArrow and DuckDB end the process where they can start no thread",
}

Cell = tuple[Attack, Road]


def cells() -> list[Cell]:
    return [(attack, road) for attack in ATTACKS for road in ROADS if attack.fits(road)]


def is_installed(road: Road) -> bool:
    return all(importlib.util.find_spec(name) is not None for name in road.needs)


def table() -> str:
    """Returns the matrix for docs/testing.md."""
    heads = [attack.name for attack in ATTACKS]
    lines = [f"| | {' | '.join(heads)} |", f"|---|{':-:|' * len(heads)}"]
    for road in ROADS:
        marks = ["●" if attack.fits(road) else "" for attack in ATTACKS]
        lines.append(f"| {road.name} | {' | '.join(marks)} |")
    return "\n".join(lines)
