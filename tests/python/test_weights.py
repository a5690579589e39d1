"""Records by weight: each comes floor or ceil of its expected count, in every epoch."""

from __future__ import annotations

import pickle
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrfast as tfr
from record_files import write_shards
from reference_order import ReferencePermutation, derive_key, siphash24


def epoch_of(plan: tfr.Plan, epoch: int) -> list[int]:
    return [i for step in range(plan.steps) for i in plan.indices(epoch, step).tolist()]


@settings(max_examples=60)
@given(
    weights=st.lists(st.integers(0, 2**40), min_size=1, max_size=60).filter(any),
    length=st.integers(0, 300),
    seed=st.integers(0, 2**64 - 1),
    epoch=st.integers(0, 2**64 - 1),
)
def test_the_draws_are_those_of_the_specification(
    weights: list[int], length: int, seed: int, epoch: int
) -> None:
    plan = tfr.Plan(tfr.Weighted(weights, length=length, seed=seed), 64)
    drawn = epoch_of(plan, epoch)
    total = sum(weights)
    offset = siphash24(derive_key(5, seed, epoch), [0]) * total >> 64
    owners = np.cumsum(weights)
    shuffle = ReferencePermutation(length, seed, epoch)
    places = [(shuffle.at(p) * total + offset) // length for p in range(length)]
    assert drawn == np.searchsorted(owners, places, side="right").tolist()
    counts = np.bincount(np.array(drawn, int), minlength=len(weights)).tolist()
    for weight, count in zip(weights, counts, strict=True):
        expected = Fraction(weight * length, total)
        assert expected - 1 < count < expected + 1
        if expected.denominator == 1:
            assert count == expected


@settings(max_examples=60)
@given(
    data=st.data(),
    weights=st.lists(st.floats(0, 1e6), min_size=1, max_size=60).filter(any),
    remainder=st.sampled_from(["keep", "drop", "pad"]),
)
def test_every_draw_once_on_any_world(data: Any, weights: list[float], remainder: Any) -> None:
    length = data.draw(st.integers(0, 200), "length")
    world = data.draw(st.integers(1, 6), "world")
    batch_size = data.draw(st.integers(1, 30), "batch_size")
    shuffle = data.draw(st.sampled_from([True, False, tfr.BlockShuffle(4, 2, 3)]), "shuffle")

    def plans(world: int, batch_size: int, **options: Any) -> list[tfr.Plan]:
        order = tfr.Weighted(weights, length, shuffle=shuffle)
        return [tfr.Plan(order, batch_size, rank=r, world=world, **options) for r in range(world)]

    def rows(plans: list[tfr.Plan], begin: int, end: int) -> list[int]:
        taken: list[int] = []
        for step in range(begin, end):
            for plan in plans:
                if step < plan.steps:
                    indices, valid = plan.rows(3, step)
                    taken += indices[valid].tolist()
        return taken

    whole = sorted(rows(plans(1, 2**31 - 1), 0, 1))
    first = plans(world, batch_size, remainder=remainder)
    steps = max(plan.steps for plan in first)
    stop = data.draw(st.integers(0, steps), "stop")
    position = first[0].position_after(stop - 1)
    others = data.draw(st.integers(1, 6), "others")
    rest = plans(others, 7, start=position)
    resumed = rows(rest, 0, max(plan.steps for plan in rest))
    if remainder != "drop":
        assert sorted(rows(first, 0, steps)) == whole
    assert sorted(rows(first, 0, stop) + resumed) == whole


def test_weights_of_records_as_users_give_them() -> None:
    same = [
        tfr.Plan(tfr.Weighted(weights), 2)
        for weights in ([2, 1, 1], np.array([2, 1, 1], np.uint8), np.array([2, 1, 1], np.int32))
    ]
    assert len({plan.order_text for plan in same}) == 1
    floats = [
        tfr.Plan(tfr.Weighted(np.array([0.5, 0.25, 0.25], t)), 2) for t in (np.float32, float)
    ]
    assert floats[0].order_text == floats[1].order_text
    assert [epoch_of(plan, 5) for plan in floats] == [epoch_of(same[0], 5)] * 2
    assert tfr.Plan(tfr.Weighted([2, 1, 2]), 2).order_text != same[0].order_text
    assert tfr.Plan(tfr.Weighted([2, 1, 1], length=4), 2).order_text != same[0].order_text
    tiny = tfr.Plan(tfr.Weighted([5e-324, 0, 1e-323], length=6), 2)
    assert np.bincount(epoch_of(tiny, 0)).tolist() == [2, 0, 4]
    huge = tfr.Plan(tfr.Weighted([1e308, 1e307, 1e308], length=21), 2)
    assert sorted(np.bincount(epoch_of(huge, 0)).tolist()) == [1, 10, 10]
    assert tfr.Plan(tfr.Weighted([]), 2).steps == 0


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"weights": [1, 2]}, ValueError, "num_records is 3, but the Weighted is of 2 records"),
        ({"weights": [[1, 2, 3]]}, ValueError, "weights must have one dimension, not 2"),
        ({"weights": [1, -1, 1]}, ValueError, r"weights\[1\] is -1, but must be a finite number"),
        ({"weights": [1, 1, np.nan]}, ValueError, r"weights\[2\] is nan"),
        ({"weights": [0, 0, 0]}, ValueError, "weights need a record whose weight is above 0"),
        ({"weights": [0.0, 0.0, 0.0]}, ValueError, "weights need a record whose weight is above 0"),
        ({"weights": [2**62, 1, 1]}, ValueError, "sum of integer weights must be at most"),
        ({"weights": ["a", "b", "c"]}, TypeError, "weights must be numbers"),
        ({"weights": [1, 1, 1], "shuffle": 9}, TypeError, "shuffle must be True, False or a Block"),
        ({"weights": [1, 1, 1], "length": -1}, ValueError, "length is -1"),
    ],
)
def test_weights_without_a_meaning(options: Any, kind: Any, message: str) -> None:
    with pytest.raises(kind, match=message):
        tfr.Plan(tfr.Weighted(**options), 2, num_records=3)


def test_a_loader_draws_by_weight(tmp_path: Path) -> None:
    reader = tfr.Reader(write_shards(tmp_path, [20, 13]))
    weights = np.arange(33) % 4
    order = tfr.Weighted(weights, length=100, seed=2)
    loader = tfr.Loader(reader, 16, order=order)
    plan = tfr.Plan(order, 16)
    drawn: list[int] = []
    for batch in loader:
        drawn += batch.indices.tolist()
        assert batch.tolist() == [reader[i] for i in batch.indices.tolist()]
    assert drawn == epoch_of(plan, 0)
    state = loader.state_dict()
    with pytest.raises(ValueError, match="The state is of the order"):
        tfr.Loader(reader, 16, order=tfr.Weighted(weights + 1, length=100, seed=2)).load_state_dict(
            state
        )
    copy = pickle.loads(pickle.dumps(loader))
    assert next(iter(copy)).indices.tolist() == plan.indices(1, 0).tolist()
