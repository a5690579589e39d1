"""The matrix of `make stress`: the documentation shows it, and roads that lie are found."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import changes
import damage
import matrix
import tfrfast as tfr
from road import ORDERED, READS, SKIPS, Opened, Road, Task
from scene import Scene

ROOT = Path(__file__).resolve().parents[2]
if not (ROOT / "docs").exists():
    pytest.skip(f"there is no {ROOT}/docs: run a checkout", allow_module_level=True)


def test_the_documentation_shows_the_matrix() -> None:
    page = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
    assert matrix.table() in page
    assert [each.name for each in matrix.ATTACKS if f"\n| {each.name} |" not in page] == []


def test_what_is_known_to_fail_is_a_cell() -> None:
    names = {(attack.name, road.name) for attack, road in matrix.cells()}
    assert len(names) == len(matrix.cells())
    assert matrix.KNOWN.keys() <= names


LIES: dict[str, Callable[[list[Any]], list[Any]]] = {
    "nothing": lambda rows: [],
    "one less": lambda rows: rows[:-1],
    "one twice": lambda rows: [*rows, rows[0]],
    "another byte": lambda rows: [(0, rows[0][1][:-1] + b"?"), *rows[1:]],
    "another order": lambda rows: [(None, record) for _, record in rows[1:] + rows[:1]],
    "another number": lambda rows: [(number + 1, record) for number, record in rows],
}


def scene_of(open_road: Callable[[Task], Opened], folder: Path, seed: int = 3) -> Scene:
    folder.mkdir(exist_ok=True)
    road = Road("a road", open_road, frozenset({READS, SKIPS, ORDERED}))
    return Scene(road, random.Random(seed), folder)


def read(task: Task) -> list[Any]:
    return list(enumerate(tfr.Reader(task.paths, **task.options)))


@pytest.mark.parametrize("lie", LIES)
def test_a_road_that_returns_other_records_is_found(tmp_path: Path, lie: str) -> None:
    honest = scene_of(lambda task: Opened(lambda: read(task)), tmp_path / "honest")
    lying = scene_of(lambda task: Opened(lambda: LIES[lie](read(task))), tmp_path / "lying")
    for scene in (honest, lying):
        scene.set_up(shards=3)
    honest.check_exact()
    with pytest.raises(AssertionError):
        lying.check_exact()


def hides_errors(task: Task) -> Opened:
    def epoch() -> Iterator[Any]:
        try:
            yield from read(task)
        except tfr.RecordError:
            return

    return Opened(epoch)


def reports_nothing(task: Task) -> Opened:
    def epoch() -> Iterator[Any]:
        return ((None, record) for _, record in read(task))

    return Opened(epoch, lambda: False)


_seen: dict[str, list[Any]] = {}


def keeps_what_it_has_seen(task: Task) -> Opened:
    return Opened(lambda: _seen.setdefault(task.paths[0], read(task)))


@pytest.mark.parametrize(
    ("attack", "lying"),
    [
        (damage.attack, hides_errors),
        (damage.attack, reports_nothing),
        (changes.attack, keeps_what_it_has_seen),
    ],
)
def test_a_road_that_hides_an_attack_is_found(tmp_path: Path, attack: Any, lying: Any) -> None:
    def is_found(seed: int) -> bool:
        try:
            attack(scene_of(lying, tmp_path / str(seed), seed))
        except AssertionError:
            return True
        return False

    assert any(map(is_found, range(10)))
