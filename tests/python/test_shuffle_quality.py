"""Statistical quality. Each measure is a z-score, and must be between -4 and 4.

Seeds are fixed, so a test fails always or never. With other seeds, a fair shuffle would fail one
measure in 16,000. Unfair orders test that the measures see unfairness.
"""

import numpy as np
import pytest

import shuffle_measures as measure
import tfrfast as tfr
from orders import order_of, shuffled

LIMIT = 4.0
SIZES = [1024, 3008, 65536, 204_800, 262_144 + 32]
BITS = 32


def orders_of(n: int, count: int = 12, epoch: int = 0, first_seed: int = 0) -> list[measure.Order]:
    return [shuffled(n, first_seed + seed, epoch) for seed in range(count)]


def at(plan: tfr.Plan, position: int) -> int:
    return int(plan.records_at(0, position, position + 1)[0])


@pytest.mark.parametrize("n", [1024, 65536, 10**9, 2**62])
@pytest.mark.parametrize("position", [0, 1, 777])
def test_every_record_stands_at_a_position_equally_often(n: int, position: int) -> None:
    keys = [(seed, epoch) for seed in range(4096) for epoch in (0, 1)]
    records = [int(shuffled(n, *key, position, position + 1)[0]) for key in keys]
    counts = np.bincount([record * 32 // n for record in records], minlength=32)
    assert abs(measure.chi_square_z(counts, len(records) / 32)) < LIMIT


@pytest.mark.parametrize("n", SIZES)
def test_an_order_is_random(n: int) -> None:
    orders = orders_of(n)
    assert abs(measure.places(orders)) < LIMIT
    assert abs(measure.neighbours(orders, buckets=32)) < LIMIT
    assert abs(measure.close_neighbours(orders)) < LIMIT
    assert abs(measure.lags(orders)) < LIMIT


@pytest.mark.parametrize("n", SIZES)
def test_orders_of_different_keys_are_unrelated(n: int) -> None:
    orders = orders_of(n, 12)
    for others in [
        orders_of(n, first_seed=1),
        orders_of(n, epoch=1),
        orders_of(n, first_seed=1 << 32),
        orders_of(n, first_seed=1 << 63),
        [shuffled(n, 0, 1 + seed) for seed in range(12)],  # seed and epoch change places
    ]:
        assert abs(measure.agreement(orders, others)) < LIMIT
        assert abs(measure.same_place(orders, others)) < LIMIT


def test_each_key_bit_changes_each_result_bit_half_the_time() -> None:
    n = 2**BITS
    seeds = np.random.default_rng(1).integers(0, 2**63, 400).tolist()
    for change_epoch in (False, True):
        flips = np.empty((64, len(seeds) * 4), np.uint64)
        for bit in range(64):
            rows = []
            for seed in seeds:
                other = (seed, 5 ^ (1 << bit)) if change_epoch else (seed ^ (1 << bit), 5)
                rows.append(shuffled(n, seed, 5, last=4) ^ shuffled(n, *other, last=4))
            flips[bit] = np.concatenate(rows)
        assert abs(measure.avalanche(flips, BITS)) < LIMIT


def test_each_position_bit_changes_each_result_bit_half_the_time() -> None:
    n = 2**BITS
    positions = np.random.default_rng(2).integers(0, n, 500).tolist()
    for seed in range(4):
        plan = tfr.Plan(tfr.Shuffle(seed), 1, num_records=n)
        flips = np.array(
            [[at(plan, p) ^ at(plan, p ^ (1 << bit)) for p in positions] for bit in range(BITS)],
            np.uint64,
        )
        assert abs(measure.avalanche(flips, BITS)) < LIMIT


@pytest.mark.parametrize("n", [4000, 4096, 50_003])
def test_every_record_of_a_block_shuffle_comes_first_equally_often(n: int) -> None:
    """Blocks stay together, so only single positions can be fair, and all of them are."""
    shuffle = tfr.BlockShuffle(40, 4, streams=8)
    for step in (0, 100, 398):
        records = [
            int(tfr.Plan(order_of(shuffle, seed), 10, num_records=n).indices(epoch, step)[0])
            for seed in range(2048)
            for epoch in (0, 1)
        ]
        counts = np.bincount([record * 32 // n for record in records], minlength=32)
        assert abs(measure.chi_square_z(counts, len(records) / 32)) < LIMIT


def test_the_measures_see_what_is_not_random() -> None:
    n = 65536
    given = np.arange(n)
    fair = orders_of(n, 4)
    blocks = [np.concatenate(np.split(given, 256)[::-1])] * 4
    affine = [(given * 40503 + seed) % n for seed in range(4)]
    assert measure.places(blocks) > 100
    assert measure.neighbours(affine) > 100
    assert measure.close_neighbours(blocks) > 100
    assert measure.lags([np.sort(order[:n]) for order in fair]) > 100
    assert measure.agreement(fair, [order ^ 1 for order in fair]) > 100
    assert measure.same_place(fair, [order ^ 1 for order in fair]) > 100
    assert abs(measure.same_place(fair, [np.roll(order, 1) for order in fair])) < LIMIT
    constant = np.zeros((64, 1000), np.uint64)
    assert measure.avalanche(constant, 32) > 100
