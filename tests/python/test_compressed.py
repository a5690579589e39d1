"""GZIP and ZLIB shards: read in order and at random, damaged, with good and with bad indexes."""

from __future__ import annotations

import errno
import gzip
import json
import os
import random
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from cached_indexes import ENTRY, PART, SECTIONS, number_at, seal
from children import printed_by
from compressed_files import deflated, in_members, one_block_of_zeros, ways_to_pack
from orders import order_of
from tfrecord_model import frame, rested, shard_of
from tfrfast import _native

MIB = 1 << 20


def mixed_records() -> list[bytes]:
    """Small and large records, 4 MiB in all. Some deflate well, and one is larger than a span."""
    rng = random.Random(7)
    records = [
        rng.randbytes(rng.choice([0, 3, 40, 900])) + b"abcd" * rng.randrange(200)
        for _ in range(3500)
    ]
    records[700] = rng.randbytes(3 * MIB // 2)
    return records


RECORDS = mixed_records()
PLAIN = shard_of(RECORDS)
ORDER = np.random.default_rng(1).permutation(len(RECORDS))


def open_shard(tmp_path: Path, data: bytes, **options: Any) -> tfr.Reader:
    path = tmp_path / "shard"
    path.write_bytes(data)
    return tfr.Reader(rested(path), **options)


def index_path(reader: tfr.Reader) -> Path:
    return Path(tfr._native.cached_index_path(reader.shards[0].path))


WAYS = [(kind, name) for kind in ("GZIP", "ZLIB") for name in ways_to_pack(kind)]


@pytest.mark.parametrize(("compression", "way"), WAYS)
def test_records_are_those_that_were_compressed(tmp_path: Path, compression: str, way: str) -> None:
    data = ways_to_pack(compression)[way](PLAIN)
    for io, choice in (("mmap", "auto"), ("pread", compression)):
        reader = open_shard(tmp_path, data, io=io, index="memory", compression=choice)
        assert list(reader) == RECORDS
        assert reader.read(ORDER).tolist() == [RECORDS[i] for i in ORDER]
    shard = reader.shards[0]
    assert (shard.compression, shard.num_bytes) == (compression, len(data))
    assert reader.locate(1) == (0, 16 + len(RECORDS[0]), len(RECORDS[1]))


def test_an_index_with_seek_points_is_kept_and_found(tmp_path: Path, io: Any) -> None:
    reader = open_shard(tmp_path, deflated(PLAIN, "GZIP"), io=io)
    assert reader[ORDER].tolist() == [RECORDS[i] for i in ORDER]
    path = reader.shards[0].path
    again = tfr.Reader(path, io=io, index="require")
    assert again.shards[0].index
    assert again[ORDER].tolist() == [RECORDS[i] for i in ORDER]
    assert [again[int(i)] for i in ORDER[:50]] == [RECORDS[i] for i in ORDER[:50]]


def test_members_of_a_mebibyte_need_no_windows(tmp_path: Path) -> None:
    sizes = []
    for data in (deflated(PLAIN, "GZIP"), in_members(PLAIN, "GZIP", MIB)):
        index = index_path(open_shard(tmp_path, data))
        sizes.append(index.stat().st_size - 8 * len(RECORDS))
        index.unlink()
    assert sizes[1] < 2000 < sizes[0]


def test_rows_may_repeat_and_mix_with_plain_shards(tmp_path: Path) -> None:
    for number in range(3):
        data = shard_of(RECORDS[:500])
        (tmp_path / f"s{number}").write_bytes(data if number == 1 else gzip.compress(data))
    reader = tfr.Reader([tmp_path / f"s{number}" for number in range(3)])
    rows = np.random.default_rng(3).integers(0, 1500, 4000)
    assert reader.read(rows).tolist() == [RECORDS[i % 500] for i in rows]
    assert list(reader) == 3 * RECORDS[:500]


@pytest.mark.parametrize("verify", ["full", "header"])
def test_the_loader_delivers_each_record_once(tmp_path: Path, verify: Any) -> None:
    reader = open_shard(tmp_path, deflated(PLAIN, "ZLIB"), verify=verify)
    for shuffle in (True, False, tfr.BlockShuffle(256, 2)):
        batches = list(tfr.Loader(reader, 100, order=order_of(shuffle), threads=2))
        numbers = np.concatenate([batch.indices for batch in batches])
        assert np.array_equal(np.sort(numbers), np.arange(len(RECORDS)))
        records = [record for batch in batches for record in batch]
        assert records == [RECORDS[i] for i in numbers]


@pytest.mark.parametrize("max_bytes", ["0", "3000000"])
def test_a_small_cache_of_spans_is_enough(tmp_path: Path, max_bytes: str) -> None:
    reader = open_shard(tmp_path, deflated(PLAIN, "GZIP"))
    code = (
        "import sys, tfrfast as tfr\n"
        "reader = tfr.Reader(sys.argv[1], threads=2)\n"
        "print(sum(map(len, reader)), sum(map(len, reader[::-7])))"
    )
    printed = printed_by(code, reader.shards[0].path, TFRFAST_INFLATED_BYTES=max_bytes)
    expected = (sum(map(len, RECORDS)), sum(map(len, RECORDS[::-7])))
    assert printed.split() == [str(number) for number in expected]


# ---- damage


def raised_by(tmp_path: Path, data: bytes, **options: Any) -> tfr.RecordError:
    with pytest.raises(tfr.RecordError) as raised:
        open_shard(tmp_path, data, **options)
    assert raised.value.path == str(tmp_path / "shard")
    return raised.value


def good_records_of(tmp_path: Path, data: bytes) -> list[bytes]:
    reader = open_shard(tmp_path, data, on_corruption="skip")
    assert reader.skipped
    records = list(reader)
    assert reader[::-1].tolist() == records[::-1]
    return records


@pytest.mark.parametrize("compression", ["GZIP", "ZLIB"])
def test_every_cut_is_a_torn_tail(tmp_path: Path, compression: str, io: Any) -> None:
    data = deflated(PLAIN, compression)
    trailer = 8 if compression == "GZIP" else 4
    for cut in [1, trailer - 1, trailer, trailer + 1, 1000, len(data) // 2, len(data) - 20]:
        error = raised_by(tmp_path, data[:-cut], io=io)
        assert isinstance(error, tfr.TruncatedRecordError)
        assert "of the uncompressed stream" in str(error)
        assert f"at byte {len(data) - cut} of the file" in str(error)
        good = good_records_of(tmp_path, data[:-cut])
        assert good == RECORDS[: len(good)]
        if cut <= trailer:
            assert good == RECORDS


@pytest.mark.parametrize("compression", ["GZIP", "ZLIB"])
def test_a_wrong_checksum_at_the_end_is_corruption(tmp_path: Path, compression: str) -> None:
    data = bytearray(deflated(PLAIN, compression))
    data[-1] ^= 4
    assert isinstance(raised_by(tmp_path, bytes(data)), tfr.CorruptRecordError)
    assert good_records_of(tmp_path, bytes(data)) == RECORDS


@pytest.mark.parametrize(
    ("compression", "tail"),
    [
        (compression, tail)
        for compression in ("GZIP", "ZLIB")
        for tail in (b"garbage", bytes(511) + b"x", b"\x1f\x8b\x08\xff" + bytes(20))
    ]
    + [("ZLIB", bytes(512))],  # after GZIP these are padding
)
def test_what_is_not_a_member_after_one_is_corruption(
    tmp_path: Path, compression: str, tail: bytes
) -> None:
    data = deflated(PLAIN, compression) + tail
    assert isinstance(raised_by(tmp_path, data), tfr.CorruptRecordError)
    assert good_records_of(tmp_path, data) == RECORDS


def test_flipped_bits_never_give_wrong_records(tmp_path: Path, io: Any) -> None:
    records = RECORDS[:300]
    wanted = set(records)
    whole = deflated(shard_of(records), "GZIP", 6)
    rng = random.Random(5)
    for _ in range(100):
        data = bytearray(whole)
        data[rng.randrange(10, len(data))] ^= 1 << rng.randrange(8)
        reader = open_shard(tmp_path, bytes(data), on_corruption="skip", io=io, index="memory")
        assert wanted.issuperset(reader)
        with pytest.raises(tfr.RecordError):
            list(open_shard(tmp_path, bytes(data), io=io, index="memory"))


def test_damage_in_the_records_themselves_has_both_places(tmp_path: Path) -> None:
    plain = bytearray(PLAIN)
    at = sum(16 + len(record) for record in RECORDS[:3000]) + 20
    plain[at] ^= 1
    data = deflated(bytes(plain), "GZIP")
    reader = open_shard(tmp_path, data)
    with pytest.raises(tfr.CorruptRecordError, match=r"record 3000 .* of the file\)") as raised:
        reader.read(ORDER)
    assert (raised.value.record, raised.value.offset) == (3000, at - 20)
    skipping = open_shard(tmp_path, data, on_corruption="skip")
    assert list(skipping) == RECORDS[:3000] + RECORDS[3001:]
    assert len(skipping.read(ORDER)) == len(RECORDS) - 1
    assert skipping.skipped[0].begin == at - 20

    del plain[at : at + 1]
    assert isinstance(raised_by(tmp_path, deflated(bytes(plain), "ZLIB")), tfr.CorruptRecordError)


def test_empty_and_nearly_empty_shards(tmp_path: Path) -> None:
    assert list(open_shard(tmp_path, gzip.compress(b""))) == []
    assert list(open_shard(tmp_path, zlib.compress(b"") * 3)) == []
    assert list(open_shard(tmp_path, b"", compression="GZIP")) == []
    assert list(open_shard(tmp_path, gzip.compress(b"") + gzip.compress(frame(b"")))) == [b""]


# ---- indexes that do not fit


@pytest.mark.parametrize("verify", ["full", "header"])
def test_a_file_that_changed_behind_its_index_is_noticed(tmp_path: Path, verify: Any) -> None:
    other = list(RECORDS)
    rng = random.Random(9)
    for number in range(0, len(other), 3):
        other[number] = rng.randbytes(len(other[number]))
    open_shard(tmp_path, deflated(PLAIN, "GZIP", 0))
    path = tmp_path / "shard"
    reader = tfr.Reader(path, verify=verify, io="pread")  # has no spans of the walk
    with open(path, "r+b") as file:
        file.write(deflated(shard_of(other), "GZIP", 0))
    with pytest.raises(tfr.StaleIndexError, match="index it again"):
        reader.read(ORDER)
    assert list(tfr.Reader(path)) == other


@pytest.mark.parametrize("verify", ["full", "header"])
def test_a_damaged_index_never_gives_wrong_bytes(tmp_path: Path, verify: Any) -> None:
    """Flips any bit of the seek points and windows, and mends the checksums or does not."""
    data = deflated(PLAIN, "GZIP", 1)
    reader = open_shard(tmp_path, data)
    shard = reader.shards[0].path
    index = index_path(reader)
    good = index.read_bytes()
    section = PART + number_at(good, SECTIONS) + number_at(good, ENTRY + 96)
    spans_at = section + 16
    count = number_at(good, section)
    rng = random.Random(11)
    noticed = 0
    for _ in range(30):
        bad = bytearray(good)
        # Mostly the entries, otherwise anything from them to the end.
        end = spans_at + 48 * count if rng.random() < 0.6 else len(bad)
        bad[rng.randrange(spans_at, end)] ^= 1 << rng.randrange(8)
        if rng.random() < 0.8:
            spans = bytes(bad[section : spans_at + 48 * count])
            bad[ENTRY + 120 : ENTRY + 124] = _native.crc32c(spans).to_bytes(4, "little")
            seal(bad)
        index.write_bytes(bytes(bad))
        try:
            # A new reader has no inflated spans.
            again = tfr.Reader(shard, index="require", verify=verify)
            assert again[::-1].tolist() == RECORDS[::-1]
        except tfr.StaleIndexError:
            noticed += 1
    assert noticed > 15
    index.write_bytes(good)
    assert list(tfr.Reader(shard, index="require")) == RECORDS


def test_in_order_nothing_is_inflated_twice(tmp_path: Path) -> None:
    """The file is cut after the inflated bytes, because a test by time alone would be flaky."""
    builder = open_shard(tmp_path, deflated(PLAIN, "GZIP"), io="pread")
    reader = tfr.Reader(tmp_path / "shard", io="pread")
    records: Iterator[bytes] = iter(reader)
    first = [next(records) for _ in range(100)]
    with open(tmp_path / "shard", "r+b") as file:
        file.truncate(5)
    # The first span is in memory, and is not read again.
    assert first == RECORDS[:100]
    assert reader[:100].tolist() == RECORDS[:100]
    with pytest.raises(tfr.TruncatedRecordError):
        reader[-1]
    # Building the index inflated all spans.
    assert builder[:].tolist() == RECORDS


@pytest.mark.slow
def test_a_block_too_long_to_be_entered_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "zeros.gz"
    path.write_bytes(one_block_of_zeros(600 << 20))
    with pytest.raises(OSError, match="deflate block of more than 512 MiB") as caught:
        tfr.Reader(path, compression="GZIP")
    assert caught.value.errno == errno.EFBIG
    assert caught.value.filename == str(path)


def test_info_says_what_compression_costs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from tfrfast.cli import main

    (tmp_path / "shard").write_bytes(deflated(PLAIN, "GZIP"))
    assert main(["info", str(tmp_path / "shard")]) == 0
    out = capsys.readouterr().out
    assert "compression  GZIP" in out
    assert "ms for one record at random" in out
    assert main(["info", "--json", str(tmp_path / "shard")]) == 0
    assert json.loads(capsys.readouterr().out)["inflating"]["uncompressed_bytes"] == len(PLAIN)


@pytest.mark.parametrize("padding", [1, 7, 65_536, 3 * MIB])
def test_zeros_after_the_last_member_are_padding(tmp_path: Path, padding: int) -> None:
    data = in_members(PLAIN, "GZIP", len(PLAIN) // 2) + bytes(padding)
    assert gzip.decompress(data) == PLAIN
    for _ in range(2):  # the second time with the index of the first
        reader = open_shard(tmp_path, data)
        assert reader.read(ORDER).tolist() == [RECORDS[i] for i in ORDER]
        assert list(reader) == RECORDS
        assert reader.skipped == []


def test_padding_has_no_end(tmp_path: Path) -> None:
    path = tmp_path / "shard"
    path.write_bytes(gzip.compress(PLAIN))
    os.truncate(path, 1 << 42)
    assert list(tfr.Reader(path)) == RECORDS


@pytest.mark.parametrize(
    ("before", "after"), [(b"", bytes(9) + b"x"), (b"", b"x"), (bytes(9), b"")]
)
def test_what_is_no_padding_is_damage(tmp_path: Path, before: bytes, after: bytes) -> None:
    data = before + gzip.compress(PLAIN) + after
    with pytest.raises(gzip.BadGzipFile):
        gzip.decompress(data)
    with pytest.raises(tfr.CorruptRecordError):
        open_shard(tmp_path, data)


@pytest.mark.parametrize("zeros", [1, 7, 65_536, 3 * MIB])
def test_zeros_between_members_are_a_member_that_was_lost(tmp_path: Path, zeros: int) -> None:
    data = gzip.compress(PLAIN) + bytes(zeros) + gzip.compress(PLAIN)
    with pytest.raises(tfr.CorruptRecordError):
        open_shard(tmp_path, data)
    reader = open_shard(tmp_path, data, on_corruption="skip")
    assert list(reader) == 2 * RECORDS
    assert len(reader.skipped) == 1


def test_a_name_in_the_header_has_an_end(tmp_path: Path) -> None:
    def with_name(length: int) -> bytes:
        return b"\x1f\x8b\x08\x08" + bytes(6) + b"n" * length + b"\0" + gzip.compress(PLAIN)[10:]

    assert list(open_shard(tmp_path, with_name(65_000))) == RECORDS
    with pytest.raises(tfr.CorruptRecordError):
        open_shard(tmp_path, with_name(70_000))


def test_isa_l_and_zlib_find_the_same_records_and_read_each_other_s_indexes(tmp_path: Path) -> None:
    pytest.importorskip("isal")
    packed = gzip.compress(PLAIN)
    (tmp_path / "0").write_bytes(packed)
    for i in range(1, 9):
        damaged = bytearray(packed)
        damaged[len(packed) * i // 9] ^= i
        (tmp_path / f"{i}").write_bytes(damaged)
        (tmp_path / f"{i + 8}").write_bytes(packed[: len(packed) * i // 9])
    program = (
        "import os, sys, zlib, tfrfast as tfr\n"
        "os.chdir(sys.argv[1])\n"
        "print(tfr._native.inflaters()[0])\n"
        "for name in range(17):\n"
        "    for index in 'memory', 'auto':\n"
        "        reader = tfr.Reader(str(name), index=index, on_corruption='skip')\n"
        "        print(len(reader), zlib.crc32(b''.join(reader)))"
    )

    def run(choice: str) -> list[str]:
        return printed_by(program, tmp_path, TFRFAST_INFLATE=choice).splitlines()

    isal, zlib_alone = run(""), run("zlib")
    assert (isal[0], zlib_alone[0]) == ("ISA-L", "None")
    assert isal[1:] == zlib_alone[1:]
    assert isal[1] == f"{len(RECORDS)} {zlib.crc32(b''.join(RECORDS))}"
    assert len(set(isal)) > 5
