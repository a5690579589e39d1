"""The Reader's contract, on data that is in order."""

import copy
import functools
import gc
import pickle
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from children import in_threads
from tfrecord_model import write_shard
from tfrfast.reader import Location

RECORDS = [bytes([i]) * (i * 7 % 50) for i in range(100)]


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    """RECORDS in three shards, an empty one among them."""
    return [
        write_shard(tmp_path / "a", RECORDS[:60]),
        write_shard(tmp_path / "b", []),
        write_shard(tmp_path / "c", RECORDS[60:]),
    ]


@pytest.fixture
def reader(paths: list[str], io: Any) -> tfr.Reader:
    return tfr.Reader(paths, io=io)


def test_length_and_every_record_by_number(reader: tfr.Reader) -> None:
    assert len(reader) == 100
    assert [reader[i] for i in range(100)] == RECORDS
    assert [reader[i - 100] for i in range(100)] == RECORDS
    assert list(reader) == RECORDS
    assert list(reversed(reader)) == RECORDS[::-1]


@pytest.mark.parametrize("verify", ["full", "header"])
@pytest.mark.parametrize("threads", [1, 3])
def test_options_do_not_change_what_is_read(
    paths: list[str], io: Any, verify: Any, threads: int
) -> None:
    with tfr.Reader(paths, io=io, verify=verify, threads=threads, index="memory") as reader:
        assert reader[:].tolist() == RECORDS


@pytest.mark.parametrize(
    "key",
    [
        slice(None),
        slice(3, 70),
        slice(70, 3),
        slice(None, None, 7),
        slice(None, None, -1),
        slice(90, 10, -9),
        slice(-20, -1, 2),
        slice(-1000, 1000),
        slice(100, 200),
        slice(np.int64(5), np.int8(9)),
    ],
)
def test_slices_are_those_of_lists(reader: tfr.Reader, key: slice) -> None:
    batch = reader[key]
    assert batch.tolist() == RECORDS[key]
    assert batch.indices.tolist() == list(range(100))[key]


@pytest.mark.parametrize(
    "dtype",
    ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", ">i4", ">u8"],
)
def test_integer_arrays_of_every_type(reader: tfr.Reader, dtype: str) -> None:
    numbers = np.array([99, 0, 60, 59, 60], dtype)
    assert reader[numbers].tolist() == [RECORDS[i] for i in numbers]
    assert reader.read(numbers[::-2]).tolist() == [RECORDS[i] for i in numbers[::-2]]


def test_sequences_of_integers(reader: tfr.Reader) -> None:
    wanted = [RECORDS[i] for i in (5, -1, 5, 0)]
    assert reader[[5, -1, 5, 0]].tolist() == wanted
    assert reader.read((5, -1, 5, 0)).tolist() == wanted
    assert reader.read([np.int32(5), -1, np.uint8(5), 0]).tolist() == wanted
    assert reader.read(range(3)).tolist() == RECORDS[:3]
    assert reader[[5, -1]].indices.tolist() == [5, 99]
    for nothing in ([], (), np.array([], np.int64), range(0)):
        assert len(reader.read(nothing)) == 0


@pytest.mark.parametrize("kind", [int, np.int8, np.int64, np.uint16, np.uint64, np.intp, np.array])
def test_one_integer_of_any_kind_is_one_record(reader: tfr.Reader, kind: Any) -> None:
    assert reader[kind(7)] == RECORDS[7]


@pytest.mark.parametrize(
    "key", [100, -101, np.int64(100), 1 << 40, -(1 << 63), np.uint64(2**64 - 1), 10**30]
)
def test_one_number_that_does_not_exist(reader: tfr.Reader, key: Any) -> None:
    with pytest.raises(IndexError) as raised:
        reader[key]
    if -(2**62) < key < 2**62:
        assert str(raised.value) == f"Record {key} does not exist: there are 100 records."


@pytest.mark.parametrize(
    "numbers",
    [
        [0, 100],
        [0, -101],
        np.array([2**64 - 1], np.uint64),
        np.array([2**63], np.uint64),
        np.array([-(2**63)], np.int64),
    ],
)
def test_numbers_that_do_not_exist(reader: tfr.Reader, numbers: Any) -> None:
    with pytest.raises(IndexError, match="does not exist: there are 100 records"):
        reader.read(numbers)


@pytest.mark.parametrize(
    "numbers",
    [[1.0], np.array([1.0]), ["1"], [None], [[1, 2]], np.zeros((2, 2), int), [1, [2]], {1, 2}, 1.5],
)
def test_what_is_no_list_of_integers_is_refused(reader: tfr.Reader, numbers: Any) -> None:
    with pytest.raises(TypeError, match="Record numbers must be"):
        reader.read(numbers)


@pytest.mark.parametrize("mask", [np.zeros(100, bool), [True, False], np.array([True])])
def test_masks_are_refused_with_what_to_do(reader: tfr.Reader, mask: Any) -> None:
    for read in (reader.read, reader.__getitem__):
        with pytest.raises(TypeError, match=r"For a mask, pass numpy.flatnonzero\(mask\)"):
            read(mask)


@pytest.mark.parametrize("key", [1.0, "1", None, np.float32(1), True])
def test_keys_that_are_no_numbers_are_refused(reader: tfr.Reader, key: Any) -> None:
    with pytest.raises(TypeError):
        reader[key]


def test_locate(reader: tfr.Reader) -> None:
    frames = [16 + len(record) for record in RECORDS]
    assert reader.locate(3) == Location(0, sum(frames[:3]), len(RECORDS[3]))
    assert reader.locate(60) == (2, 0, len(RECORDS[60]))
    assert reader.locate(-1) == (2, sum(frames[60:99]), len(RECORDS[99]))
    assert reader.locate(np.int32(3)) == reader.locate(3)
    for number in (100, -101):
        with pytest.raises(IndexError, match=f"Record {number} does not exist"):
            reader.locate(number)


def test_shards(reader: tfr.Reader, paths: list[str]) -> None:
    assert [shard.path for shard in reader.shards] == paths
    assert [shard.num_records for shard in reader.shards] == [60, 0, 40]
    assert [shard.num_bytes for shard in reader.shards] == [
        Path(path).stat().st_size for path in paths
    ]
    assert {shard.compression for shard in reader.shards} == {None}
    last = reader.shards[2]
    assert last.lengths.tolist() == [len(record) for record in RECORDS[60:]]
    assert last.offsets.tolist() == [reader.locate(i).offset for i in range(60, 100)]
    assert last.offsets.dtype == last.lengths.dtype == np.int64
    assert repr(last) == f"Shard({paths[2]!r}, num_records=40, num_bytes={last.num_bytes})"
    assert isinstance(reader.shards, tuple)


def test_shards_outlive_their_reader(reader: tfr.Reader) -> None:
    shards = reader.shards
    reader.close()
    assert shards[0].lengths.tolist() == [len(record) for record in RECORDS[:60]]


def test_a_reader_that_nobody_holds_is_gone_at_once(paths: list[str]) -> None:
    reader = tfr.Reader(paths)
    assert reader.shards[0].offsets[0] == 0
    gone = weakref.ref(reader)
    gc.disable()
    try:
        del reader
        assert gone() is None
    finally:
        gc.enable()


def test_the_same_shard_may_be_given_twice(paths: list[str]) -> None:
    reader = tfr.Reader([paths[2], paths[0], paths[2]])
    assert list(reader) == RECORDS[60:] + RECORDS[:60] + RECORDS[60:]
    assert len(reader.shards) == 3


def test_no_shards_and_empty_shards(paths: list[str], io: Any) -> None:
    for nothing in ([], [paths[1]], [paths[1]] * 3):
        reader = tfr.Reader(nothing, io=io)
        assert len(reader) == 0
        assert list(reader) == []
        assert reader[:].tolist() == []
        with pytest.raises(IndexError, match="there are 0 records"):
            reader[0]


def test_closing(reader: tfr.Reader, paths: list[str]) -> None:
    iterator = iter(reader)
    assert next(iterator) == RECORDS[0]
    batch = reader[:]
    assert not reader.closed
    with reader as entered:
        assert entered is reader
    assert reader.closed
    reader.close()
    for use in (
        lambda: reader[0],
        lambda: reader[:],
        lambda: len(reader),
        lambda: iter(reader),
        lambda: next(iterator),
        lambda: reader.read([0]),
        lambda: reader.locate(0),
        lambda: reader.shards,
        lambda: reader.skipped,
        lambda: reader._fingerprint,
    ):
        with pytest.raises(ValueError, match="This reader has been closed"):
            use()
    assert repr(reader) == "Reader(closed)"
    assert batch.tolist() == RECORDS


def test_repr(reader: tfr.Reader) -> None:
    assert repr(reader) == "Reader(3 shards, 100 records)"


def test_pickle_opens_the_same_files_in_the_same_way(paths: list[str], io: Any) -> None:
    reader = tfr.Reader(paths, io=io, verify="header", on_corruption="skip", threads=1)
    for other in (pickle.loads(pickle.dumps(reader)), copy.deepcopy(reader)):
        assert list(other) == RECORDS
        assert other._options == reader._options
        assert other._fingerprint == reader._fingerprint
    reader.close()
    assert list(pickle.loads(pickle.dumps(reader))) == RECORDS


@pytest.mark.parametrize(
    ("option", "value", "allowed"),
    [
        ("compression", "gzip", '"auto", "", "GZIP" or "ZLIB"'),
        ("verify", "all", '"full" or "header"'),
        ("on_corruption", "ignore", '"raise" or "skip"'),
        ("io", "read", '"auto", "mmap" or "pread"'),
    ],
)
def test_an_option_that_does_not_exist(
    paths: list[str], option: str, value: str, allowed: str
) -> None:
    with pytest.raises(ValueError, match=f'{option} is "{value}", but must be {allowed}.'):
        tfr.Reader(paths, **{option: value})  # type: ignore[arg-type]


def test_threads_must_be_positive(paths: list[str]) -> None:
    with pytest.raises(ValueError, match="threads is 0, but must be from 1"):
        tfr.Reader(paths, threads=0)


def test_everything_after_the_paths_is_keyword_only(paths: list[str]) -> None:
    with pytest.raises(TypeError):
        tfr.Reader(paths, "auto")  # type: ignore[misc]


def test_iteration_streams(tmp_path: Path, io: Any) -> None:
    big = [bytes([i]) * 300_000 for i in range(12)]
    reader = tfr.Reader(write_shard(tmp_path / "big", big), io=io)
    iterator = iter(reader)
    assert iter(iterator) is iterator
    for record in big:
        assert next(iterator) == record
    for _ in range(3):
        with pytest.raises(StopIteration):
            next(iterator)


def test_iterators_are_independent(reader: tfr.Reader) -> None:
    assert list(zip(reader, reader, strict=True)) == list(zip(RECORDS, RECORDS, strict=True))


def test_an_iterator_keeps_its_reader_alive(paths: list[str]) -> None:
    iterator = iter(tfr.Reader(paths))
    gc.collect()
    assert list(iterator) == RECORDS


def test_threads_share_one_reader(reader: tfr.Reader) -> None:
    def read(seed: int) -> None:
        random = np.random.default_rng(seed)
        for _ in range(30):
            numbers = random.integers(0, 100, 50)
            assert reader[numbers].tolist() == [RECORDS[i] for i in numbers]
            assert reader[int(numbers[0])] == RECORDS[numbers[0]]

    in_threads(functools.partial(read, seed) for seed in range(8))


def test_threads_share_one_iterator(tmp_path: Path, io: Any) -> None:
    records = [i.to_bytes(4, "little") * 5 for i in range(60_000)]
    iterator = iter(tfr.Reader(write_shard(tmp_path / "many", records), io=io))
    seen: list[list[bytes]] = [[] for _ in range(6)]
    in_threads(functools.partial(each.extend, iterator) for each in seen)
    assert sorted(record for each in seen for record in each) == sorted(records)
