import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tfrfast as tfr

ORDERS = st.one_of(
    st.sampled_from([tfr.InOrder(), tfr.Shuffle(6)]),
    st.builds(
        tfr.BlockShuffle,
        st.integers(1, 40),
        st.integers(1, 9),
        streams=st.sampled_from([1, 2, 3, 8, 12, 64]),
        seed=st.integers(0, 3),
    ),
)


def plan_with(options: Any) -> tfr.Plan:
    arguments = {"num_records": 10, "batching": 1, "order": tfr.Shuffle(), **options}
    for name in ("seed", "indices"):
        if name in options:
            arguments["order"] = tfr.Shuffle(**{name: arguments.pop(name)})
    return tfr.Plan(**arguments)


def ranks_of(order: Any, n: int, world: int, batch_size: int, **options: Any) -> list[tfr.Plan]:
    return [
        tfr.Plan(order, batch_size, num_records=n, rank=rank, world=world, **options)
        for rank in range(world)
    ]


@settings(max_examples=150)
@given(
    order=ORDERS,
    n=st.integers(0, 900),
    before=st.tuples(st.integers(1, 12), st.integers(1, 70)),
    after=st.tuples(st.integers(1, 12), st.integers(1, 70)),
    stop=st.integers(0, 20),
    remainder=st.sampled_from(["keep", "drop", "pad"]),
)
@example(tfr.InOrder(), 2, (1, 1), (3, 4), 0, "pad")
@example(tfr.BlockShuffle(9, 3, streams=8), 761, (8, 7), (5, 7), 3, "drop")
def test_a_run_that_stops_goes_on_in_another_world(
    order: Any, n: int, before: tuple[int, int], after: tuple[int, int], stop: int, remainder: Any
) -> None:
    epoch = 4
    whole = tfr.Plan(order, 1, num_records=n).records_at(epoch, 0, n).tolist()
    assert sorted(whole) == list(range(n))
    first = ranks_of(order, n, *before)
    stop = min(stop, first[0].steps)
    start = first[0].position_after(stop - 1)
    assert start == min(stop * before[0] * before[1], n)
    rest = ranks_of(order, n, *after, start=start, remainder=remainder)
    assert rest[0].order_text == first[0].order_text

    position = 0
    for ranks, steps in ((first, stop), (rest, rest[0].steps)):
        batch_size = (after if ranks is rest else before)[1]
        for step in range(steps):
            rows = [plan.rows(epoch, step) if step < plan.steps else ([], []) for plan in ranks]
            real = [[int(i) for i in np.asarray(r, int)[np.asarray(v, bool)]] for r, v in rows]
            assert [len(r) > 0 for r, _ in rows] == [step < plan.steps for plan in ranks]
            counts = [len(each) for each in real]
            assert batch_size >= counts[0] >= counts[-1] >= counts[0] - 1
            taken = sum(real, [])
            expected = whole[position : position + len(taken)]
            assert sorted(taken) == sorted(expected)
            if not isinstance(order, tfr.BlockShuffle):
                assert taken == expected
            position += len(taken)
            padding = [i for (r, _), t in zip(rows, real, strict=True) for i in list(r)[len(t) :]]
            if ranks is rest and remainder != "keep":
                assert {len(r) for r, _ in rows} == {batch_size}
                assert padding == [whole[i % n] for i in range(len(padding))]
            else:
                assert padding == []
    dropped = (n - start) % (after[0] * after[1]) if remainder == "drop" else 0
    assert position == n - dropped == rest[0].position_after(rest[0].steps - 1)


@pytest.mark.parametrize("batch_size", [1, 7, 32])
@pytest.mark.parametrize("world", [1, 2, 4, 8, 16, 32, 64, 3, 12])
def test_ranks_share_few_blocks(world: int, batch_size: int) -> None:
    n, block = 64 * 10 * 20 + 333, 20
    order = tfr.BlockShuffle(block, 3, streams=64)
    before_the_tail = 64 * 10 * 20 // (world * batch_size)
    reads = {"streams": set[tuple[int, int]](), "all": set[tuple[int, int]]()}
    for rank, plan in enumerate(ranks_of(order, n, world, batch_size)):
        for step in range(plan.steps):
            read = {(record // block, rank) for record in plan.indices(0, step).tolist()}
            reads["all"] |= read
            reads["streams"] |= read if step < before_the_tail else set()
    blocks = {name: len({block for block, _ in pairs}) for name, pairs in reads.items()}
    if 64 % world == 0:
        # At most two blocks lend records to the place of the short last block. In the tail, a block
        # is shared by the few ranks whose slices meet in the block.
        assert len(reads["streams"]) <= blocks["streams"] + 2
        assert len(reads["all"]) <= blocks["all"] + world + 2
    elif batch_size == 32:
        assert len(reads["all"]) < 1.6 * blocks["all"]


def test_a_plan_over_a_billion_records_is_small() -> None:
    plan = tfr.Plan(tfr.BlockShuffle(1024, 16), 256, num_records=10**9, world=8)
    assert plan.steps == -(-(10**9) // 2048)
    assert len(pickle.dumps(plan)) < 1000
    assert len(set(plan.indices(3, plan.steps - 2).tolist())) == 256
    last = 2**31 - 1
    largest = tfr.Plan(tfr.Shuffle(), last, num_records=2**62, rank=last - 1, world=last)
    assert largest.steps == 2
    few = tfr.Plan(tfr.Shuffle(), 1000, num_records=2**62)
    assert len(few.indices(0, few.steps - 1)) == 2**62 % 1000


@pytest.mark.parametrize(
    ("order", "text"),
    [
        (tfr.InOrder(), "shuffle=none records=9"),
        (tfr.Shuffle(5), "shuffle=exact seed=5 records=9"),
        (tfr.Shuffle(6), "shuffle=exact seed=6 records=9"),
        (
            tfr.BlockShuffle(2, 3, streams=4, seed=5),
            "shuffle=blocks block_records=2 window_blocks=3 streams=4 seed=5 records=9",
        ),
        (
            tfr.Shuffle(5, indices=[1, 2]),
            "shuffle=exact seed=5 records=9 indices=2:16283186116202352693",
        ),
    ],
)
def test_an_order_is_described_by_what_fixes_it_and_by_nothing_else(order: Any, text: str) -> None:
    assert tfr.Plan(order, 7, num_records=9).order_text == f"order version=1 {text}"
    other = tfr.Plan(order, 1, num_records=9, rank=1, world=2, start=1, remainder="pad")
    assert other.order_text == f"order version=1 {text}"


def test_the_caller_keeps_its_indices() -> None:
    chosen = np.array([3, 1, 2])
    plan = tfr.Plan(tfr.InOrder(indices=chosen), 3, num_records=10)
    chosen[:] = 0
    assert plan.indices(0, 0).tolist() == [3, 1, 2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_records": -1}, "num_records is -1, but must be from 0 to"),
        ({"batching": 0}, "batch_size is 0, but must be from 1 to 2147483647."),
        ({"world": 0}, "world is 0, but must be from 1 to"),
        ({"rank": -1}, "rank is -1, but must be from 0"),
        ({"rank": 2, "world": 2}, "rank is 2, but must be 0 or more and less than world"),
        (
            {"remainder": "fill"},
            'remainder is "fill", but must be "keep", "drop" or "pad".',
        ),
        ({"start": 11}, "start is 11, but must be 0 or more and at most the positions"),
        ({"start": -1}, "start is -1"),
        ({"seed": 2**64}, "seed is 18446744073709551616"),
        ({"indices": [1, 10]}, r"indices\[1\] is 10, but must be a record number"),
        ({"indices": [-1]}, r"indices\[0\] is -1"),
        ({"indices": [[1]]}, "indices must have one dimension, not 2."),
        ({"indices": np.array([2**63], np.uint64)}, "more than any record number"),
    ],
)
def test_arguments_without_a_meaning(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plan_with(options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batching": 2.0}, "batch_size must be an integer, not float."),
        ({"order": 8192}, r"order must be an order, such as tfr.Shuffle\(seed=7\), not 8192"),
        ({"num_records": None}, "A Plan of a Shuffle needs num_records"),
        ({"batching": tfr.ByTokens(9)}, "ByTokens needs lengths"),
        ({"seed": None}, "seed must be an integer, not NoneType."),
        ({"indices": [0.5]}, "indices must be integers, not float64."),
        ({"indices": np.ones(10, bool)}, "indices must be integers, not a mask"),
        ({"indices": "train"}, "indices must be integers"),
    ],
)
def test_arguments_of_the_wrong_type(options: dict[str, object], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        plan_with(options)


def test_steps_that_do_not_exist() -> None:
    plan = tfr.Plan(tfr.Shuffle(), 4, num_records=10, rank=1, world=2)
    assert plan.steps == 2
    for step in [-1, 2, 2**70]:
        with pytest.raises(IndexError, match=f"Step {step} is out of range: rank 1 has 2 steps"):
            plan.rows(0, step)
    with pytest.raises(IndexError):
        plan.position_after(2)
    with pytest.raises(IndexError):
        plan.position_after(-2)
    with pytest.raises(ValueError, match="epoch is -1"):
        plan.indices(-1, 0)


def test_equal_pickled_and_printed() -> None:
    plan = tfr.Plan(
        tfr.Shuffle(-1, indices=[5, 6]),
        7,
        num_records=100,
        world=3,
        rank=1,
        remainder="pad",
        start=1,
    )
    copy = pickle.loads(pickle.dumps(plan))
    assert copy == plan
    assert hash(copy) == hash(plan)
    assert copy.rows(2, 0)[0].tolist() == plan.rows(2, 0)[0].tolist()
    assert repr(plan) == (
        "Plan(Shuffle(seed=18446744073709551615, indices=<2 numbers>), 7, num_records=100, "
        "rank=1, world=3, remainder='pad', start=1)"
    )
    other = tfr.Plan(
        tfr.Shuffle(-1, indices=[6, 5]),
        7,
        num_records=100,
        world=3,
        rank=1,
        remainder="pad",
        start=1,
    )
    assert plan != other
    assert len({hash(each) for each in (plan, other, plan._with(rank=0))}) == 3
    assert plan != tfr.Plan(
        tfr.Shuffle(-1), 7, num_records=100, world=3, rank=1, remainder="pad", start=1
    )
    assert (
        repr(tfr.Plan(tfr.Shuffle(), 2, num_records=5)) == "Plan(Shuffle(seed=0), 2, num_records=5)"
    )
    assert tfr.Plan(tfr.Shuffle(), 2, num_records=5) != "Plan(5, 2)"


def test_a_plan_cannot_be_changed() -> None:
    plan = tfr.Plan(tfr.Shuffle(), 2, num_records=10)
    with pytest.raises(AttributeError, match="cannot be changed"):
        plan.start = 4
    with pytest.raises(AttributeError, match="cannot be changed"):
        del plan.start
