import pickle
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr


def plan_with(options: Any) -> tfr.Plan:
    arguments = {"num_records": 10, "batching": 1, "order": tfr.Shuffle(), **options}
    for name in ("seed", "indices"):
        if name in options:
            arguments["order"] = tfr.Shuffle(**{name: arguments.pop(name)})
    return tfr.Plan(**arguments)


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
