import math
import pickle

import numpy as np
import pytest

from reference_order import ReferencePermutation
from tfrfast.order.permutation import Permutation

SIZES = [1, 2, 3, 5, 16, 17, 761, 1000, 65535, 65536, 65537, 262145, 10**9, 2**40, 2**62]


@pytest.mark.parametrize("n", SIZES)
def test_agrees_with_the_specification_in_python(n: int) -> None:
    for seed, epoch in [(0, 0), (2**64 - 1, 3), (7, 2**64 - 1)]:
        reference = ReferencePermutation(n, seed, epoch)
        perm = Permutation(n, seed, epoch)
        positions = sorted({0, n - 1, n // 2, *(n * k // 97 for k in range(97))})
        expected = [reference.at(p) for p in positions]
        assert perm[positions].tolist() == expected
        assert [perm[p] for p in positions] == expected
        assert perm.inverse(expected).tolist() == positions
        assert [reference.inverse(r) for r in expected] == positions


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
    assert Permutation.version == 1
    for (n, seed, epoch), records in GOLDEN.items():
        assert Permutation(n, seed, epoch)[: len(records)].tolist() == records


def test_order_of_a_list() -> None:
    perm = Permutation(5, seed=1)
    assert sorted(perm) == [0, 1, 2, 3, 4]
    assert len(perm) == 5
    assert not len(Permutation(0, 0))
    assert len(Permutation(2**62, 0)) == 2**62


def test_indexing_follows_numpy() -> None:
    perm = Permutation(1000, seed=9, epoch=2)
    order = np.array([perm[i] for i in range(1000)])
    assert perm[-1] == order[-1]
    assert type(perm[3]) is int
    assert type(perm[np.int32(3)]) is int
    for key in [slice(None), slice(10, 20), slice(900, 5000), slice(None, None, -7), slice(5, 2)]:
        np.testing.assert_array_equal(perm[key], order[key])
        assert perm[key].dtype == np.int64
    for key in [[1, 2, -3], np.array([[0, 5], [-1000, 999]]), np.arange(4, dtype=np.uint8), []]:
        np.testing.assert_array_equal(perm[key], order[np.asarray(key, np.int64)])
    assert perm[np.array(4)].shape == ()
    assert perm[np.arange(1000)[::-2]].tolist() == order[::-2].tolist()
    np.testing.assert_array_equal(perm.inverse(order), np.arange(1000))
    assert perm.inverse(-1) == perm.inverse(999)


def test_does_not_write_to_its_argument() -> None:
    positions = np.arange(100)
    positions.flags.writeable = False
    Permutation(100, 1)[positions]
    np.testing.assert_array_equal(positions, np.arange(100))


@pytest.mark.parametrize("key", [1000, -1001, [0, 1000], np.array([-1001]), 2**70])
def test_positions_out_of_range(key: object) -> None:
    perm = Permutation(1000, 1)
    with pytest.raises(IndexError, match="1000"):
        perm[key]  # type: ignore[index]
    with pytest.raises(IndexError, match="1000"):
        perm.inverse(key)  # type: ignore[call-overload]


@pytest.mark.parametrize("key", [1.0, "1", None, [1.5], np.array([True, False]), np.float32(1)])
def test_positions_that_are_no_integers(key: object) -> None:
    perm = Permutation(1000, 1)
    with pytest.raises(TypeError, match="integer"):
        perm[key]  # type: ignore[index]
    with pytest.raises(TypeError, match="integer"):
        perm.inverse(key)  # type: ignore[call-overload]


def test_nothing_stands_in_an_empty_permutation() -> None:
    with pytest.raises(IndexError):
        Permutation(0, 1)[0]
    assert Permutation(0, 1)[:].tolist() == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-1, 0), "n is -1, but must be from 0 to 4611686018427387904."),
        ((2**62 + 1, 0), "n is 4611686018427387905"),
        ((5, 2**64), "seed is 18446744073709551616"),
        ((5, -(2**63) - 1), "seed is -9223372036854775809"),
        ((5, 0, -1), "epoch is -1, but must be from 0"),
    ],
)
def test_arguments_out_of_range(arguments: tuple[int, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Permutation(*arguments)


def test_arguments_that_are_no_integers() -> None:
    with pytest.raises(TypeError, match=r"n must be an integer, not float\."):
        Permutation(5.0, 0)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"seed must be an integer, not NoneType\."):
        Permutation(5, None)  # type: ignore[arg-type]


def test_seeds_wrap_at_64_bits() -> None:
    assert Permutation(100, -1) == Permutation(100, 2**64 - 1)
    assert Permutation(100, -1)[:].tolist() == Permutation(100, 2**64 - 1)[:].tolist()
    assert Permutation(100, -1).seed == 2**64 - 1


def test_a_seed_at_the_next_epoch_is_not_the_next_seed() -> None:
    orders = {
        (seed, epoch): tuple(Permutation(1000, seed, epoch)[:])
        for seed in range(8)
        for epoch in range(8)
    }
    assert len(set(orders.values())) == 64


def test_equal_pickled_and_printed() -> None:
    perm = Permutation(1000, seed=7, epoch=3)
    copy = pickle.loads(pickle.dumps(perm))
    assert copy == perm
    assert hash(copy) == hash(perm)
    assert copy[:].tolist() == perm[:].tolist()
    assert perm != Permutation(1000, seed=7, epoch=4)
    assert perm != (1000, 7, 3)
    assert repr(perm) == "Permutation(1000, seed=7, epoch=3)"


def test_a_pickle_of_another_version_is_refused() -> None:
    rebuild, (version, kind, arguments, options) = Permutation(10, 1).__reduce__()
    with pytest.raises(ValueError, match="version 2 of the order"):
        rebuild(version + 1, kind, arguments, options)  # type: ignore[operator]


def test_every_order_of_a_few_records_is_equally_likely() -> None:
    """Chi-square over all n! orders; |z| < 4 would fail one fair shuffle in 15,000."""
    for n in range(2, 7):
        orders = np.stack([Permutation(n, seed)[:] for seed in range(20_000)])
        counts = np.unique(orders @ (n ** np.arange(n)), return_counts=True)[1]
        cells = math.factorial(n)
        assert len(counts) == cells
        expected = len(orders) / cells
        chi_square = float(((counts - expected) ** 2 / expected).sum())
        assert abs(chi_square - (cells - 1)) < 4 * math.sqrt(2 * (cells - 1))
