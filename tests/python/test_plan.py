import pickle
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrfast as tfr
from orders import order_of, shuffled
from tfrfast.base.arguments import Remainder

SHUFFLES = st.one_of(
    st.booleans(),
    st.builds(tfr.BlockShuffle, st.integers(1, 40), st.integers(1, 6), st.integers(1, 70)),
)
REMAINDERS = st.sampled_from(["keep", "drop", "pad"])


def plan_with(options: Any) -> tfr.Plan:
    arguments = {"num_records": 10, "batching": 1, "order": tfr.Shuffle(), **options}
    for name in ("seed", "indices"):
        if name in options:
            arguments["order"] = tfr.Shuffle(**{name: arguments.pop(name)})
    return tfr.Plan(**arguments)


def steps_of_all(plans: list[tfr.Plan]) -> int:
    return max(plan.steps for plan in plans)


def real_rows(plans: list[tfr.Plan], epoch: int, begin: int, end: int) -> list[int]:
    """The real rows of all ranks in the steps from `begin` to `end`."""
    rows: list[int] = []
    for step in range(begin, end):
        for plan in plans:
            if step < plan.steps:
                indices, valid = plan.rows(epoch, step)
                np.testing.assert_array_equal(indices, plan.indices(epoch, step))
                rows += indices[valid].tolist()
    return rows


@settings(max_examples=300)
@given(data=st.data(), shuffle=SHUFFLES, remainder=REMAINDERS)
def test_every_position_exactly_once(
    data: st.DataObject, shuffle: bool | tfr.BlockShuffle, remainder: Remainder
) -> None:
    num_records = data.draw(st.integers(0, 700), "num_records")
    indices = None
    if num_records and data.draw(st.booleans(), "chosen"):
        indices = data.draw(st.lists(st.integers(0, num_records - 1), max_size=200), "indices")
    positions = num_records if indices is None else len(indices)
    start = data.draw(st.integers(0, positions), "start")
    world = data.draw(st.integers(1, 9), "world")
    batch_size = data.draw(st.integers(1, 60), "batch_size")
    seed = data.draw(st.integers(-(2**63), 2**64 - 1), "seed")
    epoch = data.draw(st.integers(0, 2**64 - 1), "epoch")

    def ranks(world: int, batch_size: int, remainder: Remainder, start: int) -> list[tfr.Plan]:
        return [
            tfr.Plan(
                order_of(shuffle, seed, indices),
                batch_size,
                num_records=num_records,
                rank=rank,
                world=world,
                remainder=remainder,
                start=start,
            )
            for rank in range(world)
        ]

    plans = ranks(world, batch_size, remainder, start)
    steps = steps_of_all(plans)
    stop = data.draw(st.integers(0, steps), "stop")
    taken = real_rows(plans, epoch, 0, stop)
    rest = real_rows(plans, epoch, stop, steps)

    dropped = (positions - start) % (world * batch_size) if remainder == "drop" else 0
    assert len(taken) + len(rest) == positions - start - dropped
    position = plans[0].position_after(stop - 1)
    assert position == start + len(taken)

    # Plans without `start` and `stop` give the rows before and after.
    [whole] = ranks(1, 2**31 - 1, "keep", 0)
    order = whole.indices(epoch, 0).tolist() if whole.steps else []
    assert Counter(order) == Counter(range(num_records) if indices is None else indices)
    assert Counter(taken) == Counter(order[start:position])
    assert Counter(rest) == Counter(order[position : positions - dropped])
    other = ranks(data.draw(st.integers(1, 9)), data.draw(st.integers(1, 60)), "keep", position)
    assert other[0].order_text == plans[0].order_text
    assert Counter(real_rows(other, epoch, 0, steps_of_all(other))) == Counter(order[position:])

    counts = [plan.steps for plan in plans]
    if remainder == "keep":
        assert max(counts) - min(counts) <= 1
        assert counts == sorted(counts, reverse=True)
    else:
        assert max(counts) == min(counts)
        for plan in plans:
            assert all(len(plan.indices(epoch, step)) == batch_size for step in range(plan.steps))
    for step in range(steps):
        rows = [len(real_rows([plan], epoch, step, step + 1)) for plan in plans]
        assert max(rows) - min(rows) <= 1


def test_the_given_order_of_chosen_records_is_kept() -> None:
    plan = tfr.Plan(tfr.InOrder(indices=[7, 7, 1]), 2, num_records=10)
    assert [plan.indices(4, step).tolist() for step in range(plan.steps)] == [[7, 7], [1]]


def test_a_plan_of_permutation_order() -> None:
    plan = tfr.Plan(tfr.Shuffle(3), 100, num_records=1000)
    assert plan.indices(8, 2).tolist() == shuffled(1000, 3, 8, 200, 300).tolist()


def test_a_plan_over_a_billion_records_is_small() -> None:
    plan = tfr.Plan(tfr.BlockShuffle(1024, 16), 256, num_records=10**9, world=8)
    assert plan.steps == -(-(10**9) // 2048)
    assert len(pickle.dumps(plan)) < 1000
    assert len(set(plan.indices(3, plan.steps - 2).tolist())) == 256


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
    assert plan != tfr.Plan(
        tfr.Shuffle(-1, indices=[6, 5]),
        7,
        num_records=100,
        world=3,
        rank=1,
        remainder="pad",
        start=1,
    )
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


def test_the_order_is_described_by_what_fixes_it() -> None:
    plan = tfr.Plan(tfr.Shuffle(4), 7, num_records=100, world=3, rank=1)
    assert plan.order_text == "order version=1 shuffle=exact seed=4 records=100"
    assert (
        plan.order_text
        == tfr.Plan(tfr.Shuffle(4), 9, num_records=100, start=50, remainder="pad").order_text
    )
    others = [
        tfr.Plan(tfr.Shuffle(5), 7, num_records=100),
        tfr.Plan(tfr.Shuffle(4), 7, num_records=101),
        tfr.Plan(tfr.InOrder(), 7, num_records=100),
        tfr.Plan(tfr.BlockShuffle(8, 2, seed=4), 7, num_records=100),
        tfr.Plan(tfr.BlockShuffle(8, 2, streams=16, seed=4), 7, num_records=100),
        tfr.Plan(tfr.Shuffle(4, indices=range(100)), 7, num_records=100),
    ]
    assert len({plan.order_text, *(other.order_text for other in others)}) == 7
