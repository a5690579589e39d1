"""What a timeline notes, and its picture."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import tfrfast as tfr
from children import is_right_in_child
from patience import at_least_once
from record_files import write_rows

ROWS, COUNT = 10, 200
FEATURES = {"x": tfr.FixedLen((), "int64")}


@pytest.fixture
def shard(tmp_path: Path) -> str:
    write_rows(tmp_path / "x", ({"x": number} for number in range(COUNT)))
    return str(tmp_path / "x")


def slow(batch: Any) -> Any:
    time.sleep(0.004)
    return batch


def of(timeline: Any, what: str) -> float:
    return sum(act.end - act.begin for act in timeline.acts if act.what == what)


@pytest.mark.parametrize("features", [FEATURES, None], ids=["decoded", "records"])
def test_a_consumer_that_trains_hardly_waits(shard: str, features: Any) -> None:
    def check() -> None:
        loader = tfr.Loader(shard, ROWS, features=features, threads=2)
        begin = time.perf_counter()
        timeline = loader.timeline(steps=15)
        assert [slow(batch) is not None for batch in loader] == [True] * 20
        took = time.perf_counter() - begin
        assert not timeline.is_on
        assert 14 * 0.004 <= of(timeline, "training") < took
        assert of(timeline, "waiting") + of(timeline, "training") < took
        assert timeline.waited < 0.5
        lanes = {act.lane for act in timeline.acts}
        assert "consumer" in lanes
        assert lanes & {"worker 0", "worker 1"}
        assert of(timeline, "reading") > 0
        assert of(timeline, "decoding") > 0 or features is None
        for act in timeline.acts:
            assert 0 <= act.begin <= act.end < took

    at_least_once(check, tries=20)  # a busy machine may hold up the workers


def test_a_slow_transform_is_waited_for(shard: str, tmp_path: Path) -> None:
    def measured() -> Any:
        loader = tfr.Loader(shard, ROWS, features=FEATURES, threads=1, transform=slow)
        timeline = loader.timeline()
        assert len(list(loader)) == 20
        return timeline

    # A busy machine may hold up the consumer after a batch.
    timeline = next(made for _ in range(20) if (made := measured()).waited > 0.5)
    assert of(timeline, "transform") >= 15 * 0.004
    assert "waited" in str(timeline)
    timeline.save(tmp_path / "run.svg")
    root = ElementTree.fromstring((tmp_path / "run.svg").read_text())
    texts = [each.text or "" for each in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"consumer", "worker 0", "transform", "waiting"} <= set(texts)
    bars = [each for each in root.iter("{http://www.w3.org/2000/svg}rect") if len(each)]
    assert all(float(bar.get("x", "")) + float(bar.get("width", "")) < 1101 for bar in bars)
    assert len(bars) > 20
    assert timeline._repr_svg_().startswith("<svg")


def test_a_timeline_ends_and_the_next_begins_anew(shard: str) -> None:
    loader = tfr.Loader(shard, ROWS, features=FEATURES)
    first = loader.timeline(steps=5)
    assert len(list(loader)) == 20
    assert sum(act.what == "waiting" for act in first.acts) == 5
    second = loader.timeline(steps=100)
    for _ in range(2):
        assert len(list(loader)) == 20
    assert second.is_on
    assert sum(act.what == "waiting" for act in second.acts) == 40
    for steps in (0, 10**9):
        with pytest.raises(ValueError, match="steps"):
            loader.timeline(steps=steps)


def test_what_a_timeline_keeps_and_says(shard: str) -> None:
    loader = tfr.Loader(shard, ROWS, features=FEATURES, transform=slow)
    for _ in range(1000):
        timeline = loader.timeline(steps=10)
    assert "No step" in str(timeline)
    assert timeline._repr_svg_().startswith("<svg")
    assert next(iter(loader)) is not None
    loader.set_epoch(1)  # the consumer trains on, and takes no other batch
    assert "1 step: the consumer waited 100%" in str(timeline)
    assert len(list(loader)) == 20
    assert not timeline.is_on
    before = timeline.acts
    later = loader.timeline(steps=3)
    time.sleep(0.05)
    assert len(list(loader)) == 20
    assert timeline.acts == before
    assert all(act.begin >= 0 for act in later.acts)
    names = [thread.name for thread in threading.enumerate()]
    kept = loader.timeline(steps=10)
    del loader, timeline, later
    assert kept._repr_svg_()
    assert len(threading.enumerate()) <= len(names)


def test_weights_change_beside_a_timeline(shard: str) -> None:
    loader = tfr.Loader(tfr.Mixture({"a": (shard, 1), "b": (shard, 2)}), ROWS, features=FEATURES)
    timeline = loader.timeline(steps=6)
    batches = iter(loader)
    for _ in range(3):
        next(batches)
    loader.change_weights({"a": 2, "b": 1})
    batches = iter(loader)
    for _ in range(3):
        next(batches)
    assert not timeline.is_on
    assert sum(act.what == "waiting" for act in timeline.acts) == 6


def test_forks_beside_a_timeline(shard: str) -> None:
    loader = tfr.Loader(shard, 1, threads=4)
    loader.timeline(steps=100_000)
    batches = iter(loader)
    for _ in range(50):
        next(batches)
        assert is_right_in_child(lambda: next(iter(loader)) is not None)
