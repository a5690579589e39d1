"""States and key files of sets that have grown since."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr

BATCH = 7


def write(prefix: Path, first: int, end: int, **options: Any) -> None:
    with tfr.ShardedWriter(prefix, num_shards=2, append=True, **options) as writer:
        for number in range(first, end):
            writer.write_example({"n": number})


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    write(tmp_path / "train", 0, 50)
    return tmp_path / "train"


def loader(prefix: Path, **options: Any) -> tfr.Loader:
    return tfr.Loader(f"{prefix}-*", BATCH, seed=3, **options)


def epoch(loader: tfr.Loader) -> list[list[int]]:
    return [batch.indices.tolist() for batch in loader]


def saved(prefix: Path, batches: int) -> tuple[dict[str, Any], list[list[int]]]:
    """Returns a state after some batches, and the batches of the first two epochs."""
    running = loader(prefix)
    running.set_epoch(4)
    taken = iter(running)
    for _ in range(batches):
        next(taken)
    state = running.state_dict()
    again = loader(prefix)
    again.set_epoch(4)
    return state, epoch(again) + epoch(again)


def test_a_state_says_what_was_appended(prefix: Path) -> None:
    state, _ = saved(prefix, 3)
    write(prefix, 50, 61)
    with pytest.raises(ValueError, match="appended after") as refused:
        loader(prefix).load_state_dict(state)
    said = str(refused.value)
    assert "The set had 50 records, and has 61: 11 records were appended after, from " in said
    assert "train-00002-of-00002' on." in said
    fresh = loader(prefix)
    with pytest.raises(ValueError, match="appended is 'both', but must be"):
        fresh.load_state_dict(state, appended="both")  # type: ignore[arg-type]
    assert fresh.state_dict() == loader(prefix).state_dict()
    tfr.delete(f"{prefix}-*", records=[0])
    with pytest.raises(ValueError, match="had 50 records, and has 60: .*rewritten"):
        loader(prefix).load_state_dict(state, appended="leave")


@pytest.mark.parametrize("options", [{}, {"transform": lambda batch: batch, "threads": 2}])
def test_the_old_records_alone(prefix: Path, options: Any) -> None:
    state, batches = saved(prefix, 3)
    write(prefix, 50, 61)
    resumed = loader(prefix, **options)
    resumed.load_state_dict(state, appended="leave")
    assert epoch(resumed) == batches[3:8]
    assert epoch(resumed) == batches[8:]
    old_state = resumed.state_dict()
    assert (old_state["data"], old_state["epoch"]) == (state["data"], 6)


@pytest.mark.parametrize("taken", [0, 3, 8])
@pytest.mark.parametrize("options", [{}, {"transform": lambda batch: batch, "threads": 2}])
def test_all_records_from_the_next_epoch(prefix: Path, taken: int, options: Any) -> None:
    state, batches = saved(prefix, taken)
    write(prefix, 50, 61)
    whole = loader(prefix)
    whole.set_epoch(4)
    expected = [epoch(whole), epoch(whole), epoch(whole)]
    resumed = loader(prefix, **options)
    resumed.load_state_dict(state, appended="next epoch")
    places = []
    if taken > 0:
        got: list[list[int]] = []
        for batch in resumed:
            got.append(batch.indices.tolist())
            places.append(resumed.state_dict())  # also after the last batch
        assert got == batches[taken:8]
    for place in places:  # a state of an epoch of the old records is one of the old shards
        assert place["data"] == state["data"]
        other = loader(prefix)
        other.load_state_dict(place, appended="next epoch")
        assert epoch(other)[::-1] == got[: places.index(place) : -1]
        assert epoch(other) == expected[1]
    assert resumed.state_dict()["data"] == whole.state_dict()["data"]
    for rest in expected[1 if taken else 0 :]:
        assert epoch(resumed) == rest
    assert len(resumed) == 9


def test_an_epoch_that_is_given_up_is_not_the_next_one(prefix: Path) -> None:
    state, batches = saved(prefix, 3)
    write(prefix, 50, 61)
    whole = loader(prefix)
    whole.set_epoch(5)
    expected = epoch(whole)
    for go_on in (epoch, lambda each: (each.set_epoch(5), epoch(each))[1]):
        resumed = loader(prefix)
        resumed.load_state_dict(state, appended="next epoch")
        for adapt in (resumed._settled_state, resumed._counted_copy):  # of to_tf_dataset, to_keras
            with pytest.raises(ValueError, match="began without the appended records"):
                adapt()
        copied = pickle.loads(pickle.dumps(resumed))
        assert next(iter(resumed)).indices.tolist() == batches[3]
        assert go_on(resumed) == expected
        assert epoch(copied) == batches[3:8]
        assert epoch(copied) == expected
    resumed.load_state_dict(state, appended="next epoch")
    resumed.load_state_dict(whole.state_dict())
    assert resumed.epoch == 6


@pytest.mark.parametrize("appended", ["leave", "next epoch"])
def test_a_loader_of_old_records_takes_other_states(prefix: Path, appended: Any) -> None:
    state, batches = saved(prefix, 3)
    write(prefix, 50, 61)
    resumed = loader(prefix)
    resumed.load_state_dict(state, appended=appended)
    taken = iter(resumed)
    assert next(taken).indices.tolist() == batches[3]
    place = resumed.state_dict()
    for bad in ({}, {**state, "position": 51}, {**state, "data": "0"}):
        with pytest.raises(ValueError, match="state|position"):
            resumed.load_state_dict(bad)
        assert resumed.state_dict() == place
    assert next(taken).indices.tolist() == batches[4], "the epoch goes on"
    resumed.load_state_dict(place)  # as it was told above
    assert epoch(resumed) == batches[4:8]
    assert len(epoch(resumed)) == (9 if appended == "next epoch" else 8)
    whole = loader(prefix)
    next(iter(whole))
    resumed.load_state_dict(state, appended=appended)
    resumed.load_state_dict(whole.state_dict())
    fresh = loader(prefix)
    fresh.load_state_dict(whole.state_dict())
    assert epoch(resumed) + epoch(resumed) == epoch(fresh) + epoch(fresh)


@pytest.mark.parametrize("appended", ["refuse", "leave", "next epoch"])
def test_empty_shards_change_no_state(prefix: Path, appended: Any) -> None:
    state, batches = saved(prefix, 3)
    write(prefix, 50, 50)
    resumed = loader(prefix)
    resumed.load_state_dict(state, appended=appended)
    assert epoch(resumed) + epoch(resumed) == batches[3:]


def test_a_key_file_says_what_was_appended(prefix: Path, tmp_path: Path) -> None:
    tfr.build_keys(f"{prefix}-*", "n")
    with tfr.Writer(f"{prefix}-00002-of-00002") as writer:  # by hand
        writer.write_example({"n": np.int64(7)})
    with pytest.raises(FileNotFoundError, match="had 50 records, and has 51: .* appended after"):
        tfr.Reader(f"{prefix}-*").by_key("n")
    with pytest.raises(FileNotFoundError, match="There is no key file"):
        tfr.Reader(f"{prefix}-*").by_key("m")
