"""Shards and indexes that claim more bytes than any memory has give a clear error."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from cached_indexes import END, ENTRY, PART, SECTIONS, cached_index, number_at, seal
from huge_files import HUGE, huge_files
from record_files import frame, write_shard
from tfrfast import _native
from tfrfast.cli import main

NO_ROOM = "more than memory can hold"


def test_a_batch_whose_sum_wraps_to_zero_is_a_memory_error() -> None:
    with huge_files([[HUGE]] * 4) as paths:
        reader = tfr.Reader(paths, index="memory")
        assert len(reader) == 4
        with pytest.raises(MemoryError, match=NO_ROOM) as caught:
            reader.read([0, 1, 2, 3])
    text = str(caught.value)
    assert "The 4 records of a batch have 2^64 or more bytes" in text
    assert f"record 0 of '{paths[0]}' at byte 0, of {HUGE} bytes" in text


def test_one_record_many_times_over_is_a_memory_error(io: Any) -> None:
    with huge_files([[b"small", 1 << 43]]) as (path,):
        reader = tfr.Reader(path, index="memory", io=io)
        with pytest.raises(MemoryError, match=NO_ROOM):
            reader.read(np.ones(1 << 21, np.int64))  # 2**64 bytes
        assert reader.read([0, 0]).tolist() == [b"small", b"small"]


def test_a_single_record_is_a_memory_error() -> None:
    with huge_files([[b"small", HUGE]]) as (path,):
        reader = tfr.Reader(path, index="memory")
        with pytest.raises(MemoryError, match=f"Record 1 of '{path}' at byte 21, of {HUGE} bytes"):
            reader[1]
        with pytest.raises(MemoryError, match=NO_ROOM):
            reader.read([1])


@pytest.mark.parametrize("on_corruption", ["raise", "skip"])
def test_iteration_goes_on_after_it(on_corruption: Any) -> None:
    with huge_files([[b"before", HUGE, b"after"]]) as (path,):
        records = iter(tfr.Reader(path, index="memory", on_corruption=on_corruption))
        assert next(records) == b"before"
        with pytest.raises(MemoryError, match=NO_ROOM):
            next(records)
        assert list(records) == [b"after"]


@pytest.mark.parametrize("features", [None, {"x": tfr.FixedLen([], "int64")}])
def test_a_loader_raises_it_at_its_place(features: Any) -> None:
    good = tfr.encode_example({"x": 1})
    with huge_files([[good], [HUGE], [HUGE], [HUGE], [HUGE], [good]]) as paths:
        reader = tfr.Reader(paths, index="memory")
        batches = iter(tfr.Loader(reader, 1, features=features, shuffle=False))
        next(batches)
        with pytest.raises(MemoryError, match=NO_ROOM):
            next(batches)
        all_at_once = iter(tfr.Loader(reader, 6, features=features, shuffle=False))
        with pytest.raises(MemoryError, match=NO_ROOM):
            next(all_at_once)


def test_a_shuffle_names_the_record(tmp_path: Path) -> None:
    with (
        huge_files([[b"small", 1 << 43]]) as (path,),
        pytest.raises(MemoryError, match=f"record 1 at byte 21 has {1 << 43} bytes"),
    ):
        tfr.shuffle(path, str(tmp_path / "out"), num_shards=1, max_memory=1 << 40)


def test_the_command_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    with huge_files([[HUGE]] * 4) as paths:
        for command in ["cat", "verify"]:
            assert main([command, *paths]) == 2
            assert NO_ROOM in capsys.readouterr().err
        assert main(["info", "--json", *paths]) == 0
        facts = json.loads(capsys.readouterr().out)
    assert facts["payload_bytes"] == 4 * HUGE
    assert facts["record_bytes"]["mean"] == HUGE


# Places in an index: see docs/index-format.md.
FILE_BYTES, STREAM_BYTES, DAMAGE_BYTES = ENTRY, ENTRY + 48, ENTRY + 88
SEEK_POINTS_AT, SEEK_POINTS_CRC = ENTRY + 96, ENTRY + 120
# Places in the section of the seek points.
FILE_END, FIRST_SPAN, ONE_SPAN_BYTES = 8, 16, 64


@pytest.fixture
def indexed(tmp_path: Path) -> tuple[str, Path]:
    """A shard, and its index."""
    (tmp_path / "data").mkdir()
    shard = write_shard(tmp_path / "data" / "shard", [b"a", b"b"])
    return shard, cached_index(shard)


def check_not_believed(shard: str, why: str = "cannot be used") -> None:
    with pytest.raises(tfr.StaleIndexError, match=why):
        tfr.Reader(shard, index="require")
    assert list(tfr.Reader(shard)) == [b"a", b"b"]


def test_a_huge_index_file_is_read_as_far_as_it_counts(indexed: tuple[str, Path]) -> None:
    shard, index = indexed
    os.truncate(index, 1 << 43)
    assert list(tfr.Reader(shard, index="require")) == [b"a", b"b"]


def test_an_index_file_too_large_to_be_mapped_is_not_believed(indexed: tuple[str, Path]) -> None:
    shard, index = indexed
    with huge_files([[HUGE]]) as (huge,):
        index.unlink()
        index.symlink_to(huge)
        check_not_believed(shard)


def put(index: bytearray, fields: dict[int, int]) -> None:
    for at, value in fields.items():
        index[at : at + 8] = value.to_bytes(8, "little")
    seal(index)


def test_an_index_that_claims_a_huge_list_is_not_believed(indexed: tuple[str, Path]) -> None:
    shard, index = indexed
    claims = bytearray(index.read_bytes())
    part = (1 << 43) - PART
    put(claims, {DAMAGE_BYTES: 40 << 37, SECTIONS + 8: 50 << 37, PART: part, END: 1 << 43})
    index.write_bytes(claims)
    os.truncate(index, 1 << 43)
    check_not_believed(shard, NO_ROOM)


def test_a_seek_point_that_claims_a_huge_span_is_not_believed(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    shard = tmp_path / "data" / "shard"
    shard.write_bytes(gzip.compress(frame(b"a")))
    path = cached_index(shard)
    index = bytearray(path.read_bytes())
    at = PART + number_at(index, SECTIONS) + number_at(index, SEEK_POINTS_AT)
    stream, file = 1 << 52, 1 << 43
    put(index, {at + FILE_END: file, at + FIRST_SPAN: stream})
    crc = _native.crc32c(index[at : at + ONE_SPAN_BYTES]).to_bytes(4, "little")
    index[SEEK_POINTS_CRC : SEEK_POINTS_CRC + 4] = crc
    put(index, {FILE_BYTES: file, STREAM_BYTES: stream})
    path.write_bytes(index)
    os.truncate(shard, file)
    with pytest.raises(tfr.StaleIndexError, match="its seek points make no sense"):
        tfr.Reader(shard, index="require")


def test_a_padded_column_is_a_memory_error() -> None:
    longest = np.zeros(10_000_000, np.int64)
    records = [tfr.encode_example({"x": longest})] + [tfr.encode_example({"x": [1]})] * 100_000
    shape = r"shape \(100001, 10000000\), which takes more than a quarter of the memory"
    with pytest.raises(MemoryError, match=shape):
        tfr.parse_example(records, {"x": tfr.FixedLenSequence([], "int64")})
    rows = tfr.parse_example(records, {"x": tfr.VarLen("int64")})["x"]
    with pytest.raises(MemoryError, match=shape):
        rows.to_padded()
    assert rows.to_padded(2).shape == (100_001, 2)


def test_more_than_a_quarter_of_the_memory_is_an_error_however_it_is_padded() -> None:
    width = _native.max_padded_bytes() // 8 // 1000 + 1
    splits = np.array([0, 1], np.int64)
    for values in (np.zeros(1, np.int64), tfr.Bytes(np.frombuffer(b"a", np.uint8), splits)):
        rows = tfr.Ragged(values, np.repeat(splits, [1, 1000]))
        with pytest.raises(MemoryError, match=rf"\(1000, {width}\)"):
            rows.to_padded(width)
    sparse = tfr.Sparse(np.zeros((1, 2), np.int64), np.zeros(1), np.array([1000, width]))
    with pytest.raises(MemoryError, match=rf"\(1000, {width}\)"):
        sparse.to_dense()
