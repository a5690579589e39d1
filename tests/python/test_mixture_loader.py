"""Loaders over a Mixture: the source of each row, decoding, states, and changing weights."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from mixed_files import SIZES, mixture_of, write_sets

BEGINS = [0, 50, 80]
NAMES = [b"web", b"code", b"talk"]
ID = {"id": tfr.FixedLen((), "int64"), "name": tfr.FixedLen((), "bytes")}


@pytest.fixture
def shards(tmp_path: Path) -> dict[str, list[str]]:
    return write_sets(tmp_path)


def planned(mixture: tfr.Mixture, epoch: int, batch_size: int = 32) -> list[int]:
    plan = tfr.Plan(mixture, batch_size)
    return [i for step in range(plan.steps) for i in plan.indices(epoch, step).tolist()]


@pytest.mark.parametrize("order", ["permuted", "spread"])
@pytest.mark.parametrize("threads", [1, 4])
def test_batches_hold_what_the_plan_says(
    shards: dict[str, list[str]], order: str, threads: int
) -> None:
    mixture = mixture_of(shards, arrangement=order)
    loader = tfr.Loader(mixture, 32, features=ID, threads=threads)
    assert len(loader) == 7
    for epoch in range(3):
        numbers: list[int] = []
        for batch in loader:
            numbers += batch.indices.tolist()
            np.testing.assert_array_equal(
                batch["id"], batch.indices - np.take(BEGINS, batch.sources)
            )
            assert batch["name"].tolist() == [NAMES[source] for source in batch.sources]
        assert numbers == planned(mixture, epoch)


def test_records_know_their_source_too(shards: dict[str, list[str]]) -> None:
    mixture = mixture_of(shards)
    loader = tfr.Loader(mixture, 50)
    for batch in loader:
        for record, source in zip(batch, batch.sources, strict=True):
            assert tfr.parse_example([record], ID)["name"].tolist() == [NAMES[source]]
        assert batch[5:9].sources.tolist() == batch.sources[5:9].tolist()
        copy = pickle.loads(pickle.dumps(batch))
        assert copy.sources.tolist() == batch.sources.tolist()
        assert copy.source_starts.tolist() == BEGINS
    parsed = tfr.parse_example(batch, ID)
    assert parsed.sources.tolist() == batch.sources.tolist()
    assert parsed[1:3].sources.tolist() == batch.sources[1:3].tolist()
    assert pickle.loads(pickle.dumps(parsed)).sources.tolist() == batch.sources.tolist()


def test_a_pickled_loader_knows_the_source_of_each_record(shards: dict[str, list[str]]) -> None:
    loader = tfr.Loader(mixture_of(shards), 50, features=ID)
    again = pickle.loads(pickle.dumps(loader))
    for batch, same in zip(loader, again, strict=True):
        assert same.sources.tolist() == batch.sources.tolist()
        assert same["name"].tolist() == [NAMES[source] for source in same.sources]


def test_batches_of_one_data_set_have_one_source(shards: dict[str, list[str]]) -> None:
    for features in (None, ID):
        [batch] = tfr.Loader(shards["web"], 50, features=features)
        assert batch.sources.tolist() == [0] * 50
        assert batch.source_starts.tolist() == [0]


def test_features_that_a_source_lacks_are_defaults_or_empty(shards: dict[str, list[str]]) -> None:
    features = {
        "id": tfr.FixedLen((), "int64"),
        "score": tfr.FixedLen((), "float32", default=-1.0),
        "tokens": tfr.VarLen("int64"),
    }
    for batch in tfr.Loader(mixture_of(shards), 64, features=features):
        for row, source in enumerate(batch.sources):
            number = int(batch["id"][row])
            assert batch["score"][row] == (number / 2 if source == 0 else -1)
            tokens = [*range(number % 5)] if source == 1 else []
            assert batch["tokens"][row].tolist() == tokens


def test_features_are_inferred_from_all_sources(shards: dict[str, list[str]]) -> None:
    loader = tfr.Loader(mixture_of(shards), 64, features=["id", "score", "tokens"])
    assert loader.features is not None
    assert [*loader.features] == ["id", "score", "tokens"]
    assert loader.features["tokens"] == tfr.VarLen("int64")
    assert len(list(loader)) == 4


def test_ranks_and_worlds_continue_each_other(shards: dict[str, list[str]]) -> None:
    mixture = mixture_of(shards)
    ranks = [tfr.Loader(mixture, 8, rank=r, world=3, features=ID) for r in range(3)]
    taken: list[int] = []
    states = []
    iterators = [iter(rank) for rank in ranks]
    for _ in range(4):
        for iterator in iterators:
            taken += next(iterator).indices.tolist()
    states = [json.dumps(rank.state_dict()) for rank in ranks]
    assert len(set(states)) == 1
    for rank in range(2):
        loader = tfr.Loader(mixture, 20, rank=rank, world=2, features=ID)
        loader.load_state_dict(json.loads(states[0]))
        taken += [i for batch in loader for i in batch.indices.tolist()]
    assert sorted(taken) == sorted(planned(mixture, 0))


def test_the_weights_change_where_the_consumer_stands(shards: dict[str, list[str]]) -> None:
    mixture = mixture_of(shards)
    loader = tfr.Loader(mixture, 16, features=ID)
    running = iter(loader)
    seen = [next(running).indices.tolist() for _ in range(3)]
    loader.change_weights({"web": 0, "code": 1, "talk": 1})
    with pytest.raises(RuntimeError, match=r"change_weights\(\) or load_state_dict\(\) has moved"):
        next(running)
    assert loader.mixture is not None
    assert [each[:2] for each in loader.mixture.segments] == [(0, 0), (0, 48)]
    later = [batch.indices.tolist() for batch in loader]
    assert sum(map(len, later)) == 152
    assert min(min(batch) for batch in later) >= 50
    assert loader.stats().batches == 3 + len(later)
    assert loader.epoch == 1

    # A state from the moment of the change contains the weights, and so does a later state of the
    # run.
    state = json.loads(json.dumps(loader.state_dict()))
    for old in (mixture, loader.mixture):
        resumed = tfr.Loader(old, 40, features=ID)
        resumed.load_state_dict(state)
        assert resumed.mixture == loader.mixture
        assert next(iter(resumed)).indices.tolist() == planned(loader.mixture, 1)[:40]
    whole = planned(loader.mixture, 0)
    assert whole == [i for batch in seen + later for i in batch]
    assert resumed.mixture is not None
    audited = resumed.mixture.counts(state["epoch"], state["position"])
    assert [*audited.values()] == [
        sum(begin <= i < begin + size for i in whole)
        for begin, size in zip(BEGINS, SIZES.values(), strict=True)
    ]


def test_weights_may_change_at_the_end_of_an_epoch(shards: dict[str, list[str]]) -> None:
    loader = tfr.Loader(mixture_of(shards), 200, features=ID)
    first = iter(loader)
    next(first)
    loader.change_weights({"web": 1, "code": 0, "talk": 0})
    batches = list(loader)  # nothing is left of the epoch
    batches += list(loader)
    assert [batch.sources.max() for batch in batches] == [0]
    assert loader.epoch == 2


def test_weights_may_change_again_at_the_beginning_of_the_next_epoch(
    shards: dict[str, list[str]],
) -> None:
    once, twice = (tfr.Loader(mixture_of(shards), 200, features=ID) for _ in range(2))
    next(iter(twice))
    twice.change_weights({"web": 5, "code": 0, "talk": 1})
    for loader in (once, twice):
        assert len(list(loader)) == (1 if loader is once else 0)
        loader.change_weights({"web": 1, "code": 0, "talk": 1})
    assert [b.indices.tolist() for b in twice] == [b.indices.tolist() for b in once]
    twice.load_state_dict(twice.state_dict())


@pytest.mark.parametrize("batches", [0, 3, 13])
def test_weights_may_change_twice_at_one_place(shards: dict[str, list[str]], batches: int) -> None:
    once, twice = (tfr.Loader(mixture_of(shards), 16, features=ID) for _ in range(2))
    for loader in (once, twice):
        running = iter(loader)
        for _ in range(batches):
            next(running)
    twice.change_weights({"web": 5, "code": 0, "talk": 1})
    for loader in (once, twice):
        loader.change_weights({"web": 1, "code": 1, "talk": 1})
    assert twice.state_dict() == once.state_dict()
    assert [b.indices.tolist() for b in twice] == [b.indices.tolist() for b in once]


def test_one_data_set_has_no_weights(shards: dict[str, list[str]]) -> None:
    loader = tfr.Loader(shards["web"], 10)
    assert loader.mixture is None
    assert "weights" not in loader.state_dict()
    with pytest.raises(ValueError, match="Only a Loader of a Mixture has weights"):
        loader.change_weights({"web": 1})


def test_states_of_other_mixtures_are_refused(shards: dict[str, list[str]]) -> None:
    state = tfr.Loader(mixture_of(shards), 10).state_dict()
    for options in ({"seed": 4}, {"arrangement": "spread"}, {"length": 199}):
        with pytest.raises(ValueError, match="The state is of the order"):
            tfr.Loader(mixture_of(shards, **options), 10).load_state_dict(state)
    with pytest.raises(ValueError, match="The state is of the order"):
        tfr.Loader(shards["web"], 10).load_state_dict(state)
    plain = tfr.Loader(shards["web"], 10).state_dict()
    with pytest.raises(ValueError, match="The state is of the order|missing"):
        tfr.Loader(mixture_of(shards), 10).load_state_dict(plain)


def test_a_refused_state_changes_nothing(shards: dict[str, list[str]]) -> None:
    loader, changed = (tfr.Loader(mixture_of(shards), 10) for _ in range(2))
    batches = iter(loader)
    next(batches)
    changed.change_weights({"web": 1, "code": 0, "talk": 0})
    before = loader.state_dict()
    with pytest.raises(ValueError, match="start is 10000, but must be"):
        loader.load_state_dict(changed.state_dict() | {"position": 10_000})
    assert loader.state_dict() == before
    assert len([*batches]) == 19


@pytest.mark.parametrize("exhausted", ["repeat", "stop"])
@pytest.mark.parametrize("per_source", [False, True])
@pytest.mark.parametrize(
    ("weights", "why"),
    [
        ([0, 0, 0], "the sum of all weights is 0"),
        ([2**62, 2**62, 2**62], "a weight is 4611686018427387904"),
        ([1, 1], "the number of weights is 2"),
    ],
)
def test_weights_of_a_state_that_cannot_be_are_refused(
    shards: dict[str, list[str]], exhausted: Any, per_source: bool, weights: list[int], why: str
) -> None:
    mixture = mixture_of(shards, on_exhausted=exhausted, length=40, per_source=per_source)
    loader = tfr.Loader(mixture, 10)
    with pytest.raises(ValueError, match=why):
        loader.load_state_dict(loader.state_dict() | {"weights": [[0, 0, weights]]})


def test_a_pickled_loader_goes_on_with_its_weights(shards: dict[str, list[str]]) -> None:
    loader = tfr.Loader(mixture_of(shards), 16, features=ID)
    next(iter(loader))
    loader.change_weights({"web": 1, "code": 1, "talk": 0})
    next(iter(loader))
    copy = pickle.loads(pickle.dumps(loader))
    assert copy.state_dict() == loader.state_dict()
    assert [b.indices.tolist() for b in copy] == [b.indices.tolist() for b in _rest(loader)]


def _rest(loader: tfr.Loader) -> Any:
    loader.load_state_dict(loader.state_dict())
    return loader


def test_a_mixture_takes_the_seed_and_the_shuffle(shards: dict[str, list[str]]) -> None:
    for given in ({"seed": 2}, {"seed": 0}, {"shuffle": True}, {"order": tfr.Shuffle()}):
        with pytest.raises(TypeError, match="a Mixture"):
            tfr.Loader(mixture_of(shards), 10, **given)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="Give the Mixture in place of the files"):
        tfr.Loader(shards["web"], 10, order=mixture_of(shards))


def test_readers_of_a_mixture_must_read_alike(shards: dict[str, list[str]]) -> None:
    sources = {
        "web": (tfr.Reader(shards["web"]), 1),
        "code": (tfr.Reader(shards["code"], on_corruption="skip"), 1),
    }
    with pytest.raises(ValueError, match="'code' was opened with on_corruption='skip'"):
        tfr.Loader(tfr.Mixture(sources), 10)
    counted = tfr.Mixture({"web": (shards["web"], 1), "code": (10, 1)})
    with pytest.raises(ValueError, match="'code' was given as a number of records"):
        tfr.Loader(counted, 10)


def test_a_source_without_records_is_a_source_with_files(
    shards: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "none").touch()
    monkeypatch.chdir(tmp_path)
    mixture = tfr.Mixture({"web": (shards["web"], 1), "none": ("none", 0)})
    pickled = pickle.dumps(mixture)
    monkeypatch.chdir("/")
    for each in (mixture, pickle.loads(pickled)):
        assert sum(map(len, tfr.Loader(each, 20))) == SIZES["web"]


def test_closing_a_source_does_not_end_a_mixture(shards: dict[str, list[str]]) -> None:
    mixture = mixture_of(shards)
    loader = tfr.Loader(mixture, 50)
    for reader in mixture._readers:
        assert reader is not None
        reader.close()
    assert sum(len(batch) for batch in loader) == 200


def test_batches_of_one_source_are_read(shards: dict[str, list[str]]) -> None:
    loader = tfr.Loader(mixture_of(shards, per_source=True), 10, features=ID)
    names = [set(batch["name"].tolist()) for batch in loader]
    assert all(len(each) == 1 for each in names)
    flat = [next(iter(each)) for each in names]
    assert [flat.count(name) for name in NAMES] == [11, 7, 2]
    loader.load_state_dict(loader.state_dict())
    with pytest.raises(ValueError, match="The state is of the order"):
        tfr.Loader(mixture_of(shards, per_source=True), 9, features=ID).load_state_dict(
            loader.state_dict()
        )
