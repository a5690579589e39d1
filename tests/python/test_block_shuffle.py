import pickle

import pytest

import orders
import tfrfast as tfr
from reference_order import ReferenceBlockShuffle


def order_of(size: int, shuffle: tfr.BlockShuffle, seed: int, epoch: int) -> list[int]:
    plan = tfr.Plan(orders.order_of(shuffle, seed), max(size, 1), num_records=size)
    return plan.indices(epoch, 0).tolist() if plan.steps else []


@pytest.mark.parametrize("shape", [(1, 1, 1), (4, 3, 2), (10, 4, 8), (7, 2, 12), (100, 2, 64)])
def test_agrees_with_the_specification_in_python(shape: tuple[int, int, int]) -> None:
    for size in [1, 2, 5, 39, 40, 41, 761, 1280]:
        for seed, epoch in [(0, 0), (5, 2)]:
            reference = ReferenceBlockShuffle(size, seed, epoch, *shape)
            order = order_of(size, tfr.BlockShuffle(*shape), seed, epoch)
            positions = sorted({0, size - 1, *(size * k // 61 for k in range(61))})
            assert [order[p] for p in positions] == [reference.at(p) for p in positions]


# Frozen, like the orders of Shuffle.
GOLDEN = {
    (5, 0, 0, (2, 2, 2)): [2, 1, 3, 4, 0],
    (761, 3, 1, (8, 4, 8)): [585, 248, 358, 437, 674, 135, 287, 379],
    (100000, 7, 0, (64, 16, 64)): [77463, 68943, 71417, 37609, 3536, 54356, 36590, 24246],
    (1000000007, 18446744073709551615, 9, (1024, 16, 64)): [
        166458595,
        367038137,
        651293776,
        850236309,
        879786712,
        905100291,
        728673929,
        767873076,
    ],
    (1000000000000, 0, 0, (4096, 8, 60)): [
        61983406115,
        210121713995,
        530114891499,
        33937457746,
        507553051615,
        565868688403,
        910201275335,
        896939591172,
    ],
}


def test_golden_vectors() -> None:
    for (size, seed, epoch, shape), records in GOLDEN.items():
        plan = tfr.Plan(tfr.BlockShuffle(*shape, seed=seed), len(records), num_records=size)
        assert plan.indices(epoch, 0).tolist() == records


def test_is_a_value() -> None:
    shuffle = tfr.BlockShuffle(1024, 16)
    assert shuffle == tfr.BlockShuffle(1024, 16, streams=8)
    assert shuffle != tfr.BlockShuffle(1024, 16, streams=32)
    assert hash(shuffle) == hash(tfr.BlockShuffle(1024, 16))
    assert pickle.loads(pickle.dumps(shuffle)) == shuffle
    assert repr(shuffle) == "BlockShuffle(block_records=1024, window_blocks=16, streams=8, seed=0)"
    with pytest.raises(AttributeError):
        shuffle.streams = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 1), "block_records is 0, but must be from 1 to 2147483647."),
        ((1, -1), "window_blocks is -1, but must be from 1"),
        ((1, 1, 0), "streams is 0, but must be from 1 to 65536."),
        ((1, 1, 65537), "streams is 65537"),
    ],
)
def test_arguments_out_of_range(arguments: tuple[int, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tfr.BlockShuffle(*arguments)


def test_arguments_that_are_no_integers() -> None:
    with pytest.raises(TypeError, match=r"block_records must be an integer, not float\."):
        tfr.BlockShuffle(1.5, 2)  # type: ignore[arg-type]
