"""Batches by length and token budget: full, within the budget, and with each record once, for any
number of ranks.
"""

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
from reference_mixture import ReferenceMixture
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
    order = tfr.Shuffle(options.pop("seed", 0))
    return tfr.Plan(order, tfr.ByTokens(tokens, lengths), num_records=len(lengths), **options)


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
    assert rest.order_text == ranks[0].order_text
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


def test_a_loader_knows_the_lengths(tmp_path: Path) -> None:
    reader = tfr.Reader(write_shards(tmp_path, [150, 0, 90], longest=500))
    lengths = [len(record) for record in reader]
    loader = tfr.Loader(reader, tfr.ByTokens(2000, reader.lengths), seed=3)
    plan = plan_of(lengths, 2000, seed=3)
    assert len(loader) == plan.steps
    for epoch in range(2):
        for step, batch in enumerate(loader):
            assert batch.indices.tolist() == plan.indices(epoch, step).tolist()
            assert batch.tolist() == [reader[i] for i in batch.indices.tolist()]
    state = loader.state_dict()
    with pytest.raises(ValueError, match="The state is of the order"):
        tfr.Loader(reader, tfr.ByTokens(1999, reader.lengths), seed=3).load_state_dict(state)
    first = [
        tfr.Loader(reader, tfr.ByTokens(2000, reader.lengths), rank=r, world=3) for r in range(3)
    ]
    seen = [i for rank in first for i in next(iter(rank)).indices.tolist()]
    for r in range(2):
        rest = tfr.Loader(reader, tfr.ByTokens(2000, reader.lengths), rank=r, world=2)
        rest.load_state_dict(first[0].state_dict())
        seen += [i for batch in rest for i in batch.indices.tolist()]
    assert sorted(seen) == list(range(240))


@pytest.mark.parametrize(
    ("order", "batching", "kind", "message"),
    [
        (tfr.Shuffle(), (9, [1, 10, 1]), ValueError, "Record 1 has a length of 10"),
        (tfr.Shuffle(), (9, [1, 1]), ValueError, "There are 2 lengths, but 3 records"),
        (tfr.Shuffle(), (0, [1, 1, 1]), ValueError, "tokens is 0"),
        (tfr.Shuffle(), (9, [[1, 1, 1]]), ValueError, "lengths must have one dimension"),
        (tfr.Shuffle(indices=[3]), (9, [1, 1, 1]), ValueError, "indices hold 3, but there are 3"),
        (tfr.Shuffle(indices=[-1]), (9, [1, 1, 1]), ValueError, "indices hold -1, but there are"),
        (tfr.Shuffle(), (9,), TypeError, "ByTokens needs lengths"),
        (tfr.InOrder(), (9, [1, 1, 1]), TypeError, "goes with a Shuffle or a Mixture, not with In"),
        (tfr.BlockShuffle(1, 1), (9, [1, 1, 1]), TypeError, "not with BlockShuffle"),
        (tfr.Weighted([1, 1, 1]), (9, [1, 1, 1]), TypeError, "make a Mixture of the sets"),
        (tfr.Mixture({"a": (3, 1)}, shuffle=False), (9, [1] * 3), TypeError, "has shuffle=True"),
    ],
)
def test_what_has_no_batches_by_length(order: Any, batching: Any, kind: Any, message: str) -> None:
    with pytest.raises(kind, match=message):
        tfr.Plan(order, tfr.ByTokens(*batching), num_records=3)


def test_chosen_records_come_as_often_as_they_were_chosen() -> None:
    chosen = [5, 1, 5, 3]
    order = tfr.Shuffle(2, indices=chosen)
    plan = tfr.Plan(order, tfr.ByTokens(20, [99, 5, 99, 9, 99, 10]), num_records=6)
    rows = [plan.indices(7, step).tolist() for step in range(plan.steps)]
    assert sorted(i for row in rows for i in row) == sorted(chosen)
    assert sorted(map(len, rows)) == [1, 1, 2]


MIXED = st.lists(st.lists(st.integers(1, 60), min_size=1, max_size=40), min_size=1, max_size=3)


class BatchMixture(ReferenceMixture):
    """A Mixture's units are batches of the sources, as docs/permutation.md specifies."""

    def __init__(self, sets: list[list[int]], tokens: int, **options: Any) -> None:
        self.sets, self.tokens = sets, tokens
        super().__init__([len(reference(each, tokens, 0, 0)) for each in sets], **options)

    def _records(self, source: int, draw: int) -> Any:
        epoch, place = divmod(draw, self.sizes[source])
        seed = siphash24(derive_key(4, self.seed, 0), [source])
        begin = sum(map(len, self.sets[:source]))
        batch = reference(self.sets[source], self.tokens, seed, epoch)[place]
        return [[begin + number for number in batch]]


@settings(max_examples=40)
@given(
    sets=MIXED,
    data=st.data(),
    seed=st.integers(0, 2**64 - 1),
    remainder=st.sampled_from(["keep", "drop", "pad"]),
)
def test_batches_of_a_mixture_are_those_of_the_specification(
    sets: list[list[int]], data: st.DataObject, seed: int, remainder: Any
) -> None:
    weights = [data.draw(st.integers(1, 4)) for _ in sets]
    exhausted: Any = data.draw(st.sampled_from(["repeat", "stop"]), "exhausted")
    batching = tfr.ByTokens(120, [length for each in sets for length in each])
    sources = {str(i): (len(each), weights[i]) for i, each in enumerate(sets)}
    mixture = tfr.Mixture(sources, on_exhausted=exhausted, seed=seed)
    tfr.Plan(mixture, batching)
    if exhausted == "repeat" and data.draw(st.booleans(), "changes"):
        new = {name: data.draw(st.integers(1, 4)) for name in sources}
        at = (
            data.draw(st.integers(0, 1)),
            data.draw(st.integers(0, tfr.Plan(mixture, batching).positions)),
        )
        mixture = mixture.with_weights(new, epoch=at[0], position=at[1])
    expected = BatchMixture(
        sets,
        120,
        segments=[(e, p, [*w.values()]) for e, p, w in mixture.segments],
        seed=seed,
        length=tfr.Plan(mixture, batching).positions,
        order="permuted",
        repeats=exhausted == "repeat",
    ).epochs(2)
    whole = tfr.Plan(mixture, batching)
    assert [epoch_of(whole, epoch) for epoch in range(2)] == expected

    # Every rank and world deals whole batches, and another world continues from a position.
    world = data.draw(st.integers(1, 4), "world")
    ranks = [
        tfr.Plan(mixture, batching, rank=r, world=world, remainder=remainder) for r in range(world)
    ]
    stop = data.draw(st.integers(0, ranks[0].steps), "stop")
    dealt = []
    for step in range(stop):
        for rank in ranks:
            if step < rank.steps:
                rows, valid = rank.rows(1, step)
                assert valid.all() or not valid.any()
                dealt += [rows.tolist()] if valid.all() else []
    position = ranks[0].position_after(stop - 1)
    assert dealt == expected[1][:position]
    assert epoch_of(whole.rest_after(position), 1) == expected[1][position:]
    counts = mixture.counts(1, position, batch_size=batching)
    starts = np.cumsum([0, *map(len, sets)])
    came = expected[0] + expected[1][:position]
    owners = [int(np.searchsorted(starts, batch[0], side="right")) - 1 for batch in came]
    assert [*counts.values()] == np.bincount(owners, minlength=len(sets)).tolist()


def epoch_of(plan: tfr.Plan, epoch: int) -> list[list[int]]:
    return [plan.indices(epoch, step).tolist() for step in range(plan.steps)]


def test_a_loader_of_a_mixture_resumes_by_tokens(tmp_path: Path) -> None:
    for name in ("web", "code"):
        (tmp_path / name).mkdir()
    web = tfr.Reader(write_shards(tmp_path / "web", [90, 30], longest=300))
    code = tfr.Reader(write_shards(tmp_path / "code", [50], longest=100))
    mixture = tfr.Mixture({"web": (web, 2), "code": (code, 1)}, seed=4)
    loader = tfr.Loader(mixture, tfr.ByTokens(1000, mixture.reader.lengths))
    plan = tfr.Plan(mixture, tfr.ByTokens(1000, mixture.reader.lengths))
    expected = [[plan.indices(e, s).tolist() for s in range(plan.steps)] for e in range(2)]
    batches = iter(loader)
    first = [next(batches) for _ in range(5)]
    for batch in first:
        assert len(set(batch.sources.tolist())) == 1
        assert batch.tolist() == [mixture.reader[i] for i in batch.indices.tolist()]
    assert [batch.indices.tolist() for batch in first] == expected[0][:5]
    resumed = pickle.loads(pickle.dumps(loader))
    other = tfr.Loader(mixture, tfr.ByTokens(1000, mixture.reader.lengths))
    other.load_state_dict(loader.state_dict())
    for each in (resumed, other):
        assert [batch.indices.tolist() for batch in each] == expected[0][5:]
        assert [batch.indices.tolist() for batch in each] == expected[1]
    loader.change_weights({"web": 0, "code": 1})
    assert {int(batch.sources[0]) for batch in loader} == {1}
