"""The order of a Shuffle."""

import math

import numpy as np
import pytest

import tfrfast as tfr
from orders import shuffled
from reference_order import ReferencePermutation

SIZES = [1, 2, 3, 5, 16, 17, 761, 1000, 65535, 65536, 65537, 262145, 10**9, 2**40, 2**62]


@pytest.mark.parametrize("n", SIZES)
def test_agrees_with_the_specification_in_python(n: int) -> None:
    for seed, epoch in [(0, 0), (2**64 - 1, 3), (7, 2**64 - 1)]:
        reference = ReferencePermutation(n, seed, epoch)
        for first in sorted({0, n - 1, *(n * k // 17 for k in range(17))}):
            for last in {first + 1, min(first + 5, n)}:
                expected = [reference.at(p) for p in range(first, last)]
                assert shuffled(n, seed, epoch, first, last).tolist() == expected


# Frozen: checkpoints of version 1 resume into these orders.
GOLDEN = {
    (1, 0, 0): [0],
    (2, 0, 0): [0, 1],
    (2, 1, 0): [0, 1],
    (3, 5, 0): [1, 0, 2],
    (10, 0, 0): [3, 4, 5, 1, 9, 2, 0, 8, 7, 6],
    (10, 0, 1): [4, 5, 8, 7, 0, 2, 6, 1, 3, 9],
    (10, 1, 0): [6, 8, 0, 1, 2, 3, 7, 5, 9, 4],
    (761, 42, 7): [733, 756, 352, 691, 555, 334],
    (65535, 1, 0): [27927, 52422, 42813, 15107, 62947, 11891],
    (65536, 1, 0): [39662, 62758, 13271, 34333, 39889, 23909],
    (65537, 1, 0): [45045, 12307, 12940, 53370, 41938, 32191],
    (262145, 1, 0): [91050, 106853, 159987, 255700, 197377, 240507],
    (1048577, 1, 0): [541913, 480054, 391307, 758935, 154724, 774986],
    (2000000, 0, 0): [1289454, 251351, 6841, 1373738, 403359, 315536],
    (1000000000, 18446744073709551615, 18446744073709551615): [
        260290550,
        35419189,
        174030789,
        126846631,
        769496498,
        42568827,
    ],
    (4294967296, 3, 0): [1983116642, 379780871, 340296258, 1185692104, 4249909883, 1783510737],
    (1099511627776, 0, 0): [
        666214192576,
        576356890338,
        887727889355,
        574672562352,
        361698499729,
        85047270544,
    ],
    (4611686018427387904, 0, 0): [
        4504891319929648924,
        989574329798772307,
        2865873311172117937,
        365958828646533022,
        3584045547024732912,
        2300708271941350036,
    ],
}


def test_golden_vectors() -> None:
    for (n, seed, epoch), records in GOLDEN.items():
        assert shuffled(n, seed, epoch, last=len(records)).tolist() == records


def test_seeds_wrap_at_64_bits() -> None:
    assert shuffled(100, -1).tolist() == shuffled(100, 2**64 - 1).tolist()
    assert tfr.Shuffle(-1) == tfr.Shuffle(2**64 - 1)


def test_a_seed_at_the_next_epoch_is_not_the_next_seed() -> None:
    orders = {tuple(shuffled(1000, seed, epoch)) for seed in range(8) for epoch in range(8)}
    assert len(orders) == 64


def test_every_order_of_a_few_records_is_equally_likely() -> None:
    """Chi-square over all n! orders; |z| < 4 would fail one fair shuffle in 15,000."""
    for n in range(2, 7):
        orders = np.stack([shuffled(n, seed) for seed in range(20_000)])
        counts = np.unique(orders @ (n ** np.arange(n)), return_counts=True)[1]
        cells = math.factorial(n)
        assert len(counts) == cells
        expected = len(orders) / cells
        chi_square = float(((counts - expected) ** 2 / expected).sum())
        assert abs(chi_square - (cells - 1)) < 4 * math.sqrt(2 * (cells - 1))
