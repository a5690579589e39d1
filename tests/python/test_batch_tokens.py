"""Batches by length and token budget: full, within the budget, each record once, on any world."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrfast as tfr
from record_files import write_shards
from reference_order import Network, ReferencePermutation, derive_key, siphash24

LENGTHS = st.lists(st.integers(0, 400), max_size=150)


def reference(lengths: list[int], tokens: int, seed: int, epoch: int) -> list[list[int]]:
    """The batches of an epoch, as docs/permutation.md specifies them."""
    bounds = [1]
    while bounds[-1] < tokens:
        bounds.append(max(bounds[-1] + 1, bounds[-1] * 11 // 10))
    buckets: dict[int, list[int]] = {}
    for record, length in enumerate(lengths):
        number = next(i for i, bound in enumerate(bounds) if max(length, 1) <= bound)
        buckets.setdefault(number, []).append(record)
    key = derive_key(7, seed, epoch)
    batches = []
    for b, members in enumerate(buckets[number] for number in sorted(buckets)):
        size = len(members)
        rows = tokens // max(max(lengths[record], 1) for record in members)
        own = siphash24(key, [b, 0]), siphash24(key, [b, 1])
        network = Network(size, own, 24)
        shuffled = [members[network.at(i)] for i in range(size)]
        batches += [shuffled[begin : begin + rows] for begin in range(0, size, rows)]
    order = ReferencePermutation(len(batches), seed, epoch, purpose=6)
    return [batches[order.at(position)] for position in range(len(batches))]


def plan_of(lengths: list[int], tokens: int, **options: Any) -> tfr.Plan:
    return tfr.Plan(len(lengths), batch_tokens=tokens, lengths=lengths, **options)


@settings(max_examples=60)
@given(
    lengths=LENGTHS, tokens=st.integers(400, 3000), seed=st.integers(0, 2**64 - 1), data=st.data()
)
def test_batches_are_those_of_the_specification(
    lengths: list[int], tokens: int, seed: int, data: st.DataObject
) -> None:
    epoch = data.draw(st.integers(0, 2**64 - 1), "epoch")
    expected = reference(lengths, tokens, seed, epoch)
    plan = plan_of(lengths, tokens, seed=seed)
    assert [plan.indices(epoch, step).tolist() for step in range(plan.steps)] == expected
    assert sorted(i for batch in expected for i in batch) == list(range(len(lengths)))
    for batch in expected:
        assert len(batch) * max(lengths[i] for i in batch) <= tokens

    world = data.draw(st.integers(1, 6), "world")
    remainder = data.draw(st.sampled_from(["keep", "drop", "pad"]), "remainder")
    ranks = [
        plan_of(lengths, tokens, seed=seed, rank=r, world=world, remainder=remainder)
        for r in range(world)
    ]
    stop = data.draw(st.integers(0, ranks[0].steps), "stop")
    dealt = []
    for step in range(ranks[0].steps):
        for rank in ranks:
            if step >= rank.steps:
                assert remainder == "keep"
                continue
            indices, valid = rank.rows(epoch, step)
            assert valid.all() or not valid.any()
            if valid.all():
                dealt.append(indices.tolist())
        if step == stop - 1:
            assert ranks[0].position_after(step) == len(dealt)
    left_out = len(expected) % world if remainder == "drop" else 0
    assert dealt == expected[: len(expected) - left_out]
    position = ranks[0].position_after(stop - 1)
    rest = plan_of(lengths, tokens, seed=seed, start=position)
    assert rest.order == ranks[0].order
    resumed = [rest.indices(epoch, step).tolist() for step in range(rest.steps)]
    assert resumed == expected[position:]


def test_little_is_padded() -> None:
    lengths = np.random.default_rng(0).lognormal(6, 1, 50_000).astype(int).clip(1, 16_384)
    plan = plan_of(lengths.tolist(), 65_536)
    used = allowed = 0
    for step in range(plan.steps):
        rows = lengths[plan.indices(0, step)]
        used += int(rows.sum())
        allowed += len(rows) * int(rows.max())
    assert used / allowed > 0.93
    assert plan.steps < 1.2 * lengths.sum() / 65_536


def test_a_plan_of_batches_survives_pickling() -> None:
    lengths = [5, 9, 200, 31, 8, 7]
    plan = plan_of(lengths, 200, seed=4, start=1)
    for copy in (pickle.loads(pickle.dumps(plan)), plan.rest_after(0).rest_after(1)):
        assert copy == plan
        assert copy.order == plan.order
        assert copy.indices(3, 0).tolist() == plan.indices(3, 0).tolist()
    assert plan_of([5, 9, 200, 31, 8, 70], 200, seed=4).order != plan.order
    assert plan_of(lengths, 400, seed=4).order != plan.order
    assert repr(plan) == "Plan(<6 records, batch_tokens=200>, start=1)"


def test_a_loader_knows_the_lengths(tmp_path: Path) -> None:
    reader = tfr.Reader(write_shards(tmp_path, [150, 0, 90], longest=500))
    lengths = [len(record) for record in reader]
    loader = tfr.Loader(reader, batch_tokens=2000, seed=3)
    plan = plan_of(lengths, 2000, seed=3)
    assert len(loader) == plan.steps
    for epoch in range(2):
        for step, batch in enumerate(loader):
            assert batch.indices.tolist() == plan.indices(epoch, step).tolist()
            assert batch.tolist() == [reader[i] for i in batch.indices.tolist()]
    state = loader.state_dict()
    with pytest.raises(ValueError, match="The state is of the order"):
        tfr.Loader(reader, batch_tokens=1999, seed=3).load_state_dict(state)
    first = [tfr.Loader(reader, batch_tokens=2000, rank=r, world=3) for r in range(3)]
    seen = [i for rank in first for i in next(iter(rank)).indices.tolist()]
    for r in range(2):
        rest = tfr.Loader(reader, batch_tokens=2000, rank=r, world=2)
        rest.load_state_dict(first[0].state_dict())
        seen += [i for batch in rest for i in batch.indices.tolist()]
    assert sorted(seen) == list(range(240))


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"batch_tokens": 9, "lengths": [1, 10, 1]}, ValueError, "Record 1 has a length of 10"),
        ({"batch_tokens": 9, "lengths": [1, 1]}, ValueError, "There are 2 lengths, but 3 records"),
        ({"batch_tokens": 0, "lengths": [1, 1, 1]}, ValueError, "batch_tokens is 0"),
        ({"batch_tokens": 9}, TypeError, "batch_tokens needs lengths"),
        ({"batch_tokens": 9, "lengths": [1] * 3, "batch_size": 4}, TypeError, "leave batch_size"),
        ({"batch_tokens": 9, "lengths": [1] * 3, "indices": [1]}, TypeError, "leave batch_size"),
        ({"batch_tokens": 9, "lengths": [1] * 3, "shuffle": True}, TypeError, "leave batch_size"),
        ({}, TypeError, "A Plan needs batch_size, or batch_tokens"),
        ({"batch_size": 1, "lengths": [1, 1, 1]}, TypeError, "lengths are for batch_tokens"),
    ],
)
def test_budgets_without_a_meaning(options: Any, kind: Any, message: str) -> None:
    with pytest.raises(kind, match=message):
        tfr.Plan(3, **options)
