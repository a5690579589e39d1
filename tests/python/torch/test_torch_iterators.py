"""The life of a Loader's iterator and of its batches."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from collections import OrderedDict, UserDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from patience import PATIENCE_S
from torch_data import ID, ids

torch = pytest.importorskip("torch")
tt = pytest.importorskip("tfrfast.torch")


def loader(shards: list[str], **options: Any) -> Any:
    return tt.Loader(shards, 10, **{"features": ID, "seed": 3, **options})


@pytest.fixture
def no_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("transform", [None, lambda batch: batch])
def test_a_loader_ends_with_its_last_reference(
    shards: list[str], no_collection: None, transform: Any
) -> None:
    ours = loader(shards, transform=transform, threads=2)
    batches = iter(ours)
    next(batches)
    gone = weakref.ref(ours)
    del ours
    assert gone() is not None  # its iterator still needs it
    del batches
    assert gone() is None


def test_an_epoch_or_a_state_that_is_refused_changes_nothing(shards: list[str]) -> None:
    ours = loader(shards)
    batches = iter(ours)
    got = ids([next(batches)])
    state = ours.state_dict()
    with pytest.raises(ValueError, match="epoch is -1"):
        ours.set_epoch(-1)
    with pytest.raises(TypeError, match="epoch must be an integer"):
        ours.set_epoch(1.0)
    for wrong in ({}, {**state, "position": -1}, {**state, "position": 10**6}):
        with pytest.raises(ValueError, match=r"Not a Loader state|start is"):
            ours.load_state_dict(wrong)
    assert ours.state_dict() == state
    assert got + ids(batches) == ids(loader(shards))


@pytest.mark.parametrize(
    "make",
    [
        loader,
        lambda shards: iter(tt.IterableDataset(shards, 10, features=["id"], seed=1)),
        lambda _: tt.BatchSampler(100, 10, seed=1),
    ],
)
def test_a_state_of_numbers_that_cannot_be_is_refused(shards: list[str], make: Any) -> None:
    place = make(shards)
    state = place.state_dict()
    assert {"position", "step"}.intersection(state)
    for key in ("epoch", "position", "step"):
        for wrong in (-1, 1.0, "1", None, 10**6, float("inf"), []):
            if key in state and (key, wrong) != ("epoch", 10**6):
                with pytest.raises(ValueError, match=r"Not a .*state|start is"):
                    place.load_state_dict({**state, key: wrong})
    with pytest.raises(TypeError, match="it is no dict, but list"):
        place.load_state_dict([])
    assert place.state_dict() == state


EXITS = """
import sys, time
import tfrfast.torch as tt
def transform(batch):
    time.sleep(0.01)
    return batch
def main():
    loader = tt.Loader(sys.argv[2:], 10, features=["id"], transform=transform, threads=2)
    for batch in loader:
        kept.append(batch)
        if sys.argv[1] == "raise":
            raise ValueError("in the training loop")
        if sys.argv[1] == "keep":
            kept.append(iter(loader))
            next(kept[-1])
        break
kept = []
main()
"""


@pytest.mark.parametrize("way", ["break", "keep", "raise"])
def test_a_process_ends_within_a_loop(shards: list[str], tmp_path: Path, way: str) -> None:
    command = [sys.executable, "-c", EXITS, way, *shards]
    ended = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert ended.returncode == (1 if way == "raise" else 0), ended.stderr
    want = "ValueError: in the training loop" if way == "raise" else ""
    assert ended.stderr.strip().splitlines()[-1:] == ([want] if want else [])


@pytest.mark.parametrize("kind", [dict, OrderedDict, UserDict])
def test_what_goes_to_a_device_stays_of_its_kind(shards: list[str], kind: Any) -> None:
    ours = loader(shards, device="meta", transform=lambda batch: kind(x=batch["id"], y="text"))
    for batch in ours:
        assert type(batch) is kind
        assert batch["x"].device.type == "meta"
        assert batch["y"] == "text"
