"""The order of a Mixture: exact shares, and each record once before any record comes twice, for any
number of ranks.
"""

from __future__ import annotations

import ast
import pickle
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrfast as tfr
from patience import PATIENCE_S
from reference_mixture import ReferenceMixture, Segment, largest_remainders

SEEDS = st.integers(0, 2**64 - 1)
ORDERS = st.sampled_from(["permuted", "spread"])


def named(sizes: list[int], weights: list[Any]) -> dict[str, tuple[int, Any]]:
    return {f"set{i}": pair for i, pair in enumerate(zip(sizes, weights, strict=True))}


def epoch_of(mixture: tfr.Mixture, epoch: int, batch_size: int = 64) -> list[int]:
    plan = tfr.Plan(mixture, batch_size)
    return [i for step in range(plan.steps) for i in plan.indices(epoch, step).tolist()]


def sources_of(records: list[int], sizes: list[int]) -> list[int]:
    ends = np.cumsum(sizes)
    return np.searchsorted(ends, records, side="right").tolist()


@st.composite
def mixtures(draw: st.DrawFn) -> tuple[tfr.Mixture, list[int]]:
    count = draw(st.integers(1, 5))
    sizes = draw(st.lists(st.integers(1, 40), min_size=count, max_size=count))
    weights = draw(st.lists(st.integers(0, 150), min_size=count, max_size=count).filter(any))
    exhausted = draw(st.sampled_from(["repeat", "stop"]))
    length = draw(st.one_of(st.none(), st.integers(0, 250)))
    mixture = tfr.Mixture(
        named(sizes, weights),
        length=length,
        on_exhausted=exhausted,  # type: ignore[arg-type]
        arrangement=draw(ORDERS),
        seed=draw(SEEDS),
    )
    if draw(st.booleans()) and exhausted == "repeat":
        places = st.tuples(
            st.integers(0, 2), st.integers(0, max(tfr.Plan(mixture, 1).positions - 1, 0))
        )
        for epoch, position in sorted(draw(st.sets(places, max_size=3)) - {(0, 0)}):
            changed = draw(
                st.lists(st.integers(0, 150), min_size=count, max_size=count).filter(any)
            )
            mixture = mixture.with_weights(
                dict(zip(mixture.names, changed, strict=True)), epoch=epoch, position=position
            )
    return mixture, sizes


@settings(max_examples=25)
@given(made=mixtures())
def test_the_order_is_that_of_the_specification(made: tuple[tfr.Mixture, list[int]]) -> None:
    mixture, sizes = made
    segments: list[Segment] = [(e, p, [*w.values()]) for e, p, w in mixture.segments]
    reference = ReferenceMixture(
        sizes,
        segments,
        seed=mixture.seed,
        length=tfr.Plan(mixture, 1).positions,
        order=mixture.arrangement,
        repeats=mixture.on_exhausted == "repeat",
    )
    expected = reference.epochs(4)
    assert [epoch_of(mixture, epoch) for epoch in range(4)] == expected


@pytest.mark.parametrize("order", ["permuted", "spread"])
@pytest.mark.parametrize("weights", [[300, 7], [1, 1, 255], [500, 20, 3]])
def test_large_periods_are_those_of_the_specification(order: Any, weights: list[int]) -> None:
    sizes = [40, 90, 10][: len(weights)]
    mixture = tfr.Mixture(named(sizes, weights), length=1200, arrangement=order, seed=5)
    reference = ReferenceMixture(
        sizes, [(0, 0, weights)], seed=5, length=1200, order=order, repeats=True
    )
    assert [epoch_of(mixture, epoch) for epoch in range(2)] == reference.epochs(2)


@settings(max_examples=100)
@given(made=mixtures())
def test_each_record_comes_once_before_any_comes_twice(
    made: tuple[tfr.Mixture, list[int]],
) -> None:
    """Inside a period of a permuted mixture, the end of one pass may mix with the next one."""
    mixture, sizes = made
    if mixture.on_exhausted == "stop":
        for epoch in range(3):
            records = epoch_of(mixture, epoch)
            assert len(set(records)) == len(records)
        return
    times = np.zeros(sum(sizes), int)
    begins = np.cumsum([0, *sizes])
    slack = sum(sum(weights.values()) for _, _, weights in mixture.segments)
    for epoch in range(4):
        np.add.at(times, epoch_of(mixture, epoch), 1)
        for begin, end in pairwise(begins):
            own = times[begin:end]
            passes = own.sum() // len(own)
            strangers = np.abs(own - passes).clip(1).sum() - len(own)
            assert strangers <= slack
            if mixture.arrangement == "spread":
                assert own.max() - own.min() <= 1


@settings(max_examples=80)
@given(
    weights=st.lists(st.integers(0, 60), min_size=1, max_size=6).filter(any),
    length=st.integers(0, 500),
    order=ORDERS,
)
def test_periods_are_exact_and_the_rest_is_by_largest_remainders(
    weights: list[int], length: int, order: Any
) -> None:
    sizes = [10] * len(weights)
    mixture = tfr.Mixture(named(sizes, weights), length=length, arrangement=order)
    sources = sources_of(epoch_of(mixture, 2), sizes)
    reduced = [*mixture.weights.values()]
    period = sum(reduced)
    for begin in range(0, length - period + 1, period):
        counts = Counter(sources[begin : begin + period])
        assert [counts[s] for s in range(len(weights))] == reduced
    counts = Counter(sources)
    quotas = largest_remainders(reduced, length % period)
    whole = length // period
    assert [counts[s] for s in range(len(weights))] == [
        whole * w + q for w, q in zip(reduced, quotas, strict=True)
    ]


@settings(max_examples=100)
@given(
    weights=st.lists(st.integers(1, 400), min_size=2, max_size=10),
    length=st.integers(1, 2500),
)
def test_spread_stays_close_to_the_quota_at_every_prefix(weights: list[int], length: int) -> None:
    sizes = [10] * len(weights)
    mixture = tfr.Mixture(named(sizes, weights), length=length, arrangement="spread")
    sources = np.array(sources_of(epoch_of(mixture, 0), sizes))
    came = (sources[:, None] == np.arange(len(weights))).cumsum(0)
    shares = np.array(weights) / sum(weights)
    deviation = np.abs(came - np.arange(1, length + 1)[:, None] * shares).max()
    assert deviation < (1 if len(weights) == 2 else 1.5)
    period = sum(mixture.weights.values())
    whole = length // period * period
    if whole:
        in_periods = np.abs(came - np.arange(1, length + 1)[:, None] * shares)[:whole].max()
        assert in_periods <= 1 - 1 / (2 * len(weights) - 2) + 1e-9


def test_orders_of_a_permuted_period_are_equally_likely() -> None:
    mixture = tfr.Mixture({"a": (1, 1), "b": (1, 1), "c": (1, 1), "d": (1, 2)}, length=50_000)
    sources = np.array(epoch_of(mixture, 0, 4096)).reshape(-1, 5)
    _, times = np.unique(sources, axis=0, return_counts=True)
    assert len(times) == 60
    expected = len(sources) / 60
    chi_square = ((times - expected) ** 2 / expected).sum()
    assert chi_square < 98  # 0.1 % of such sums are larger


def test_an_epoch_that_stops_leaves_no_record_for_another_period() -> None:
    mixture = tfr.Mixture({"a": (100, 2), "b": (30, 1)}, on_exhausted="stop")
    assert tfr.Plan(mixture, 1).positions == 91
    assert mixture.counts(0, 91) == {"a": 61, "b": 30}
    shorter = tfr.Mixture({"a": (100, 2), "b": (30, 1)}, on_exhausted="stop", length=10)
    assert tfr.Plan(shorter, 1).positions == 10


@settings(max_examples=80)
@given(
    sizes=st.lists(st.integers(0, 50), min_size=1, max_size=4),
    data=st.data(),
)
def test_the_epoch_that_stops_is_the_longest_there_can_be(
    sizes: list[int], data: st.DataObject
) -> None:
    weights = data.draw(
        st.lists(st.integers(0, 9), min_size=len(sizes), max_size=len(sizes)).filter(any)
    )
    mixture = tfr.Mixture(named(sizes, weights), on_exhausted="stop")
    reduced = [*mixture.weights.values()]
    period = sum(reduced)

    def quotas(length: int) -> list[int]:
        rest = largest_remainders(reduced, length % period)
        return [length // period * w + q for w, q in zip(reduced, rest, strict=True)]

    fits = [
        length
        for length in range(sum(n for n, w in zip(sizes, weights, strict=True) if w) + 1)
        if all(quota <= size for quota, size in zip(quotas(length), sizes, strict=True))
    ]
    whole = max(length for length in fits)
    assert tfr.Plan(mixture, 1).positions == whole


def test_too_few_records_are_an_error_if_that_is_asked_for() -> None:
    with pytest.raises(ValueError, match=r"Source 1 has 30 records, but an epoch needs 33 of them"):
        tfr.Mixture({"a": (100, 2), "b": (30, 1)}, on_exhausted="error", length=100)
    exact = tfr.Mixture({"a": (100, 2), "b": (33, 1)}, on_exhausted="error", length=99)
    assert len(set(epoch_of(exact, 0))) == 99
    with pytest.raises(ValueError, match='on_exhausted="error" needs a length'):
        tfr.Mixture({"a": (100, 2)}, on_exhausted="error")


@pytest.mark.parametrize(
    ("weights", "reduced"),
    [
        ([7, 3], [7, 3]),
        ([0.7, 0.3], [7, 3]),
        ([70, 30], [7, 3]),
        ([Fraction(1, 3), Fraction(2, 3)], [1, 2]),
        ([1, 1.005], [200, 201]),
        ([np.float32(0.1), np.int64(1)], [1, 10]),
        ([0.1, 0.2, 0.7], [1, 2, 7]),
        ([1e-5, 1], [1, 100_000]),
        ([2**20 - 1, 1], [2**20 - 1, 1]),
        ([0, 5], [0, 1]),
    ],
)
def test_weights_are_exact_ratios(weights: list[Any], reduced: list[int]) -> None:
    mixture = tfr.Mixture(named([10] * len(weights), weights))
    assert [*mixture.weights.values()] == reduced


def test_a_period_that_is_too_long_is_refused_with_weights_that_fit() -> None:
    with pytest.raises(ValueError, match=r"a period of 2,000,001 records") as error:
        tfr.Mixture({"a": (10, 1), "b": (10, 1.000001)})
    assert str(error.value).endswith("Close weights that fit are {'a': 1, 'b': 1}.")
    with pytest.raises(ValueError, match="Close weights") as error:
        tfr.Mixture({"a": (10, 1_000_003), "b": (10, 1), "c": (10, 500_000)})
    close = ast.literal_eval(str(error.value).partition("fit are ")[2].rstrip("."))
    assert tfr.Mixture({name: (10, weight) for name, weight in close.items()}).weights == close
    assert close["a"] / close["c"] == pytest.approx(2.000006, rel=1e-5)


@pytest.mark.parametrize(
    ("weights", "close"),
    [
        ([0.1 + 0.2, 0.7], [3, 7]),
        ([1 / 3, 1 / 6, 1 / 2], [2, 1, 3]),
        ([1e-9, 1.0], [1, 720_720]),
        ([1e-300, 1.0, 1e300], [1, 1, 720_720]),
        ([*range(1, 100), 2**21], None),
    ],
)
def test_close_weights_are_those_that_were_meant(
    weights: list[float], close: list[int] | None
) -> None:
    with pytest.raises(ValueError, match="Close weights") as error:
        tfr.Mixture(named([10] * len(weights), weights))
    found = [*ast.literal_eval(str(error.value).partition("fit are ")[2].rstrip(".")).values()]
    assert close in (None, found)
    assert sum(found) <= 2**20
    assert all(found)
    shares = np.array(weights) / sum(weights)
    assert abs(np.array(found) / sum(found) - shares).max() < 1e-4


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        ({"a": (1, -1)}, "The weight of 'a' is -1, but must be 0 or more."),
        ({"a": (1, float("nan"))}, "must be a finite number"),
        ({"a": (1, 0)}, "needs a source whose weight is above 0"),
        ({"a": (0, 1), "b": (5, 1)}, "Source 0 has a weight, but no records."),
        ({"a": (-1, 1)}, "A number of records is -1"),
    ],
)
def test_sources_without_a_meaning(sources: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tfr.Mixture(sources)


@pytest.mark.parametrize(
    "sources", [{}, [("a", 1)], {"a": 10}, {"a": (10, "7")}, {"a": (10, True)}]
)
def test_sources_of_another_type(sources: Any) -> None:
    with pytest.raises(TypeError):
        tfr.Mixture(sources)


def test_sources_may_keep_their_order_or_choose_records() -> None:
    sources = {"a": (6, 1), "b": (6, 1)}
    given_order = tfr.Mixture(sources, arrangement="spread", shuffle=False, length=12)
    assert epoch_of(given_order, 0) == [0, 6, 1, 7, 2, 8, 3, 9, 4, 10, 5, 11]
    chosen = tfr.Mixture(sources, indices={"b": [4, 4, 1]}, length=12, shuffle=False)
    assert Counter(epoch_of(chosen, 0)) == Counter([0, 1, 2, 3, 4, 5, 10, 10, 7, 10, 10, 7])
    blocks = tfr.Mixture(sources, shuffle=tfr.BlockShuffle(2, 2, 2), length=12)
    assert sorted(epoch_of(blocks, 1)) == list(range(12))


def test_weights_that_change_leave_what_came_before() -> None:
    before = tfr.Mixture({"a": (90, 1), "b": (90, 1)}, length=100, seed=4)
    after = before.with_weights({"a": 1, "b": 0}, epoch=1, position=37)
    assert epoch_of(after, 0) == epoch_of(before, 0)
    assert epoch_of(after, 1)[:37] == epoch_of(before, 1)[:37]
    assert max(epoch_of(after, 1)[37:] + epoch_of(after, 2)) < 90
    assert tfr.Plan(after, 1).order_text != tfr.Plan(before, 1).order_text
    assert after.weights == {"a": 1, "b": 0}
    assert [each[:2] for each in after.segments] == [(0, 0), (1, 37)]
    assert after.counts(2, 0)["b"] == before.counts(1, 37)["b"]
    with pytest.raises(ValueError, match="must come after the one before it"):
        after.with_weights({"a": 1, "b": 1}, epoch=1, position=36)
    with pytest.raises(ValueError, match="for each of 'a', 'b'"):
        after.with_weights({"a": 1}, epoch=2, position=0)


@pytest.mark.parametrize("order", ["permuted", "spread"])
@pytest.mark.parametrize("batch_size", [1, 8, 25])
def test_batches_of_one_source_each(order: Any, batch_size: int) -> None:
    sizes = [100, 60, 7]
    mixture = tfr.Mixture(
        named(sizes, [5, 3, 1]), length=1000, arrangement=order, per_source=True, seed=2
    )
    length = tfr.Plan(mixture, batch_size).positions
    assert length == 1000 // batch_size * batch_size
    reference = ReferenceMixture(
        sizes,
        [(0, 0, [5, 3, 1])],
        seed=2,
        length=length,
        order=order,
        repeats=True,
        unit=batch_size,
    )
    whole = reference.epochs(2)[1]
    for world in (1, 2, 3):
        for remainder in ("keep", "drop", "pad"):
            plans = [
                tfr.Plan(mixture, batch_size, rank=r, world=world, remainder=remainder)  # type: ignore[arg-type]
                for r in range(world)
            ]
            taken: list[int] = []
            for step in range(plans[0].steps):
                for plan in plans:
                    if step >= plan.steps:
                        continue
                    indices, valid = plan.rows(1, step)
                    assert len(set(sources_of(indices.tolist(), sizes))) == 1
                    assert len(indices) == batch_size
                    taken += indices[valid].tolist()
            dropped = length % (world * batch_size) if remainder == "drop" else 0
            assert taken == whole[: length - dropped]
    plan = tfr.Plan(mixture, batch_size)
    for first, last in ((0, length), (3, 57), (90, 90)):
        assert plan.records_at(1, first, last).tolist() == whole[first:last]
    counts = mixture.counts(1, 20 * batch_size, batch_size=batch_size)
    before = mixture.counts(1, 0, batch_size=batch_size)
    counted = Counter(sources_of(whole[: 20 * batch_size], sizes))
    assert [counts[n] - before[n] for n in mixture.names] == [counted[s] for s in range(3)]


def test_without_a_batch_size_batches_of_one_source_are_not_counted() -> None:
    with pytest.raises(TypeError, match="batch_size must be given for a Mixture with per_source"):
        tfr.Mixture({"a": (100, 4), "b": (100, 1)}, per_source=True).counts(0, 50)


def test_positions_inside_a_batch_of_one_source_are_refused() -> None:
    mixture = tfr.Mixture({"a": (100, 1), "b": (100, 1)}, per_source=True)
    with pytest.raises(ValueError, match="start is 3, but must be a multiple of 8"):
        tfr.Plan(mixture, 8, start=3)


def test_a_mixture_survives_pickling() -> None:
    mixture = tfr.Mixture(
        {"a": (90, 1), "b": (90, 0.5)},
        length=70,
        arrangement="spread",
        seed=9,
        indices={"a": [5, 6]},
    ).with_weights({"a": 1, "b": 1}, epoch=2, position=30)
    copy = pickle.loads(pickle.dumps(mixture))
    assert copy == mixture
    assert copy != tfr.Mixture({"a": (90, 1), "b": (90, 0.5)})
    assert [epoch_of(copy, epoch) for epoch in range(4)] == [
        epoch_of(mixture, epoch) for epoch in range(4)
    ]
    plan = tfr.Plan(mixture, 8, rank=1, world=2, start=16)
    again = pickle.loads(pickle.dumps(plan))
    assert again == plan
    assert again.order_text == plan.order_text
    assert again.indices(2, 1).tolist() == plan.indices(2, 1).tolist()


def test_remote_epochs_have_records_of_their_sources() -> None:
    mixture = tfr.Mixture({"a": (3, 1), "b": (2**61, 2)}, length=2**40)
    numbers = tfr.Plan(mixture, 1000).indices(2**64 - 1, 7)
    assert ((numbers >= 0) & (numbers < 3 + 2**61)).all()
    with pytest.raises(ValueError, match="So many records cannot be counted"):
        mixture.counts(2**64 - 1, 5)


def test_too_many_changes_of_long_weights_are_refused_with_advice() -> None:
    mixture = tfr.Mixture({"a": (9, 1), "b": (9, 1)}, length=9)
    with pytest.raises(ValueError, match=r"2 records together, .* 4194304 .* to rounder ones"):
        for epoch in range(1, 421):
            mixture = mixture.with_weights({"a": 0.7001, "b": 0.2999}, epoch=epoch, position=0)
    assert len(mixture.segments) == 1 + 419


@pytest.mark.parametrize("per_source", [True, False])
def test_threads_make_plans_of_one_mixture(
    per_source: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    packs = [tfr.Packed(tokens, rows=1, lengths=[5] * 200) for tokens in (10, 16)]
    batchings = [10, 16] if per_source else packs
    sources = {"a": (100, 1), "b": (100, 1)}

    def plan_of(mixture: tfr.Mixture, batching: Any) -> str:
        return tfr.Plan(mixture, batching).order_text

    expected = [plan_of(tfr.Mixture(sources, per_source=per_source), each) for each in batchings]
    mixture = tfr.Mixture(sources, per_source=per_source)
    both = threading.Barrier(2, timeout=PATIENCE_S)

    def remember(self: tfr.Mixture, name: str, value: object) -> None:
        object.__setattr__(self, name, value)
        both.wait()

    monkeypatch.setattr(tfr.Mixture, "__setattr__", remember)
    with ThreadPoolExecutor(2) as pool:
        assert [*pool.map(plan_of, [mixture] * 2, batchings)] == expected
