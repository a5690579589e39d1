"""The order of a Shuffle."""

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


def test_seeds_wrap_at_64_bits() -> None:
    assert shuffled(100, -1).tolist() == shuffled(100, 2**64 - 1).tolist()
    assert tfr.Shuffle(-1) == tfr.Shuffle(2**64 - 1)
