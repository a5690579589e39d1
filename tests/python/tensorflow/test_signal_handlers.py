"""Exceptions of a program's signal handlers, such as time limits, while datasets are planned."""

from __future__ import annotations

import inspect
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import tfrfast as tfr
from record_files import write_shard

tf = pytest.importorskip("tensorflow")
internals = pytest.importorskip("tfrfast.tensorflow.internals")

SPECS = {"id": tf.io.FixedLenFeature((), tf.int64)}


@pytest.fixture
def alarm() -> Iterator[None]:
    def end_of_time(*_: Any) -> None:
        raise TimeoutError("The program's time is up.")

    before = signal.signal(signal.SIGALRM, end_of_time)
    yield
    signal.signal(signal.SIGALRM, before)


def interrupted(planned: Callable[[], Any], at: int) -> int:
    """Plans with an alarm at a call of tfrfast's. Returns the number of calls."""
    calls = 0

    def count(frame: FrameType, event: str, _: Any) -> None:
        nonlocal calls
        code = frame.f_code
        # Python drops an exception in the end of an abandoned generator.
        is_ours = "tfrfast" in code.co_filename and not code.co_flags & inspect.CO_GENERATOR
        if event == "call" and is_ours:
            calls += 1
            if calls == at:
                signal.raise_signal(signal.SIGALRM)

    sys.setprofile(count)
    try:
        planned()
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize(
    "plan",
    [
        lambda names: tfr.accelerate(tf.data.TFRecordDataset(names).map(parse).batch(2)),
        lambda names: tfr.TFRecordDataset(names).map(parse).shuffle(9, seed=1).batch(2),
    ],
)
def test_a_time_limit_ends_the_planning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alarm: None, plan: Any
) -> None:
    monkeypatch.setenv("TFRFAST_RAISE_FAULTS", "0")
    names = [write_shard(tmp_path / "shard", [tfr.encode_example({"id": 7})])]

    def planned() -> None:
        str(tfr.explain(plan(names)))

    planned()
    total = interrupted(planned, 0)
    assert total > 100
    for at in range(1, total * 3 // 4, total // 8):  # a later plan may need fewer calls
        with pytest.raises(TimeoutError, match="The program's time is up"):
            interrupted(planned, at)


def test_a_time_limit_ends_an_iteration_while_it_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alarm: None
) -> None:
    if internals.ModelProto is None:
        pytest.skip("this TensorFlow does not time its parts")
    monkeypatch.setenv("TFRFAST_RAISE_FAULTS", "0")
    monkeypatch.setattr(internals, "model_of", time_is_up)
    dataset = tfr.TFRecordDataset(write_shard(tmp_path / "shard", [b"record"] * 100))
    with pytest.raises(TimeoutError, match="The program's time is up"):
        for _ in dataset:
            time.sleep(0.01)


def time_is_up(_: Any) -> None:
    signal.raise_signal(signal.SIGALRM)


def parse(record: Any) -> Any:
    return tf.io.parse_single_example(record, SPECS)
