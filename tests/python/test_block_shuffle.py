import pickle

import pytest

import tfrfast as tfr
from reference_order import ReferenceBlockShuffle


@pytest.mark.parametrize(
    "shape", [(1, 1, 1), (4, 3, 2), (10, 4, 8), (7, 2, 12), (100, 2, 64), (4096, 8, 60)]
)
def test_agrees_with_the_specification_in_python(shape: tuple[int, int, int]) -> None:
    for size in [1, 2, 5, 39, 40, 41, 761, 1280, 10**9 + 7, 10**12]:
        for seed, epoch in [(0, 0), (5, 2), (2**64 - 1, 9)]:
            reference = ReferenceBlockShuffle(size, seed, epoch, *shape)
            plan = tfr.Plan(tfr.BlockShuffle(*shape, seed=seed), 1, num_records=size)
            for place in {0, size - 1, *(size * k // 61 for k in range(61))}:
                assert plan.records_at(epoch, place, place + 1).tolist() == [reference.at(place)]


def test_orders_of_version_1_are_frozen() -> None:
    for size, seed, epoch, shape, records in [
        (5, 0, 0, (2, 2, 2), [2, 1, 3, 4, 0]),
        (761, 3, 1, (8, 4, 8), [585, 248, 358, 437]),
        (10**12, 0, 0, (4096, 8, 60), [61983406115, 210121713995, 530114891499]),
    ]:
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
