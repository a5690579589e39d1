"""Times the lookup of the record at a position, in batches of the sizes that loaders need.

pytest benchmarks/test_permutation.py --benchmark-columns=median,ops
"""

from typing import Any

import numpy as np
import pytest

import tfrfast as tfr

BATCH = 4096
SIZES = [2_000_000, 10**9, 2**40]


@pytest.fixture(params=SIZES, ids=["2e6", "1e9", "2^40"])
def records(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.mark.benchmark(group="4096 positions")
@pytest.mark.parametrize("order", [tfr.Shuffle(1), tfr.BlockShuffle(1024, 16, seed=1)], ids=repr)
def test_plan_indices(benchmark: Any, records: int, order: tfr.Shuffle | tfr.BlockShuffle) -> None:
    plan = tfr.Plan(order, BATCH, num_records=records)
    assert len(benchmark(plan.indices, 0, 3)) == BATCH


@pytest.mark.benchmark(group="1 position")
def test_permutation_of_one_position(benchmark: Any, records: int) -> None:
    plan = tfr.Plan(tfr.Shuffle(1), 1, num_records=records)
    assert 0 <= benchmark(plan.records_at, 0, 12345, 12346)[0] < records


@pytest.mark.benchmark(group="all of 2e6")
def test_numpy_makes_a_whole_permutation(benchmark: Any) -> None:
    order = benchmark.pedantic(np.random.default_rng(0).permutation, (SIZES[0],), rounds=3)
    assert len(order) == SIZES[0]


@pytest.mark.benchmark(group="all of 2e6")
def test_permutation_of_everything(benchmark: Any) -> None:
    plan = tfr.Plan(tfr.Shuffle(1), 1, num_records=SIZES[0])
    assert len(benchmark.pedantic(plan.records_at, (0, 0, SIZES[0]), rounds=3)) == SIZES[0]
