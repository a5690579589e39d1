"""Damage as users meet it: the time of the error, its message, and the records that can still be
read.
"""

import errno
import gzip
import os
import re
import time
import zlib
from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from tfrecord_model import frame, header, masked, shard_of
from tfrfast.reader import Skipped

RECORDS = [b"%03d" % i * 10 for i in range(10)]
FRAME = 46


class Damaged:
    """A shard of RECORDS, and verbs that damage the shard."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "shard")
        self.data = bytearray(shard_of(RECORDS))
        self._time_ns = time.time_ns()
        self._write()

    def _write(self) -> None:
        Path(self.path).write_bytes(self.data)
        self._time_ns += 2_000_000_000  # a new time, even where the filesystem's clock ticks slowly
        os.utime(self.path, ns=(self._time_ns, self._time_ns))

    def flip_bit(self, offset: int, bit: int = 0) -> None:
        self.data[offset] ^= 1 << bit
        self._write()

    def truncate_to(self, size: int) -> None:
        del self.data[size:]
        self._write()

    def append(self, data: bytes) -> None:
        self.data += data
        self._write()


@pytest.fixture
def shard(tmp_path: Path) -> Damaged:
    return Damaged(tmp_path)


def test_a_bad_header_is_raised_at_opening(shard: Damaged, io: Any) -> None:
    shard.flip_bit(3 * FRAME)
    expected, found = masked(bytes([31, 0, 0, 0, 0, 0, 0, 0])), masked(bytes([30] + [0] * 7))
    for _ in range(2):  # the first reader keeps an index, and the second reader uses it
        with pytest.raises(tfr.CorruptRecordError) as raised:
            tfr.Reader(shard.path, io=io)
        error = raised.value
        assert (error.path, error.record, error.offset) == (shard.path, 3, 138)
        assert str(error) == (
            f"'{shard.path}' is corrupt: the length of record 3 at byte 138 has masked CRC-32C "
            f"0x{expected:08x}, but the file expects 0x{found:08x}. The next good record begins at "
            'byte 184. Restore the file, or read its other records with on_corruption="skip".'
        )


@pytest.mark.parametrize("cut", range(1, FRAME))
def test_a_torn_tail_is_raised_at_opening(shard: Damaged, io: Any, cut: int) -> None:
    shard.truncate_to(9 * FRAME + cut)
    with pytest.raises(tfr.TruncatedRecordError) as raised:
        tfr.Reader(shard.path, io=io)
    error = raised.value
    assert (error.path, error.record, error.offset) == (shard.path, 9, 414)
    what = (
        f"should have a header of 12 bytes, but the file ends after {cut}."
        if cut < 12
        else "should have 30 bytes (16 more with its frame), but the file ends "
        f"{cut} bytes after it begins."
    )
    assert f"'{shard.path}' is truncated: record 9 at byte 414 {what}" in str(error)
    reader = tfr.Reader(shard.path, io=io, on_corruption="skip")
    assert list(reader) == RECORDS[:9]
    assert reader.skipped == [Skipped(shard.path, 414, 414 + cut, 1)]


def test_a_bad_payload_is_raised_when_it_is_read(shard: Damaged, io: Any, tmp_path: Path) -> None:
    shard.flip_bit(4 * FRAME + 12)
    before = tmp_path / "before"
    before.write_bytes(shard_of([b"x"] * 5))
    with tfr.Reader([before, shard.path], io=io) as reader:
        assert reader[8] == RECORDS[3]
        found, expected = masked(b"104" + RECORDS[4][3:]), masked(RECORDS[4])
        assert RECORDS[4].startswith(b"004")
        for read in (lambda: reader[9], lambda: reader[:], lambda: reader.read([0, 9])):
            with pytest.raises(tfr.CorruptRecordError) as raised:
                read()
            error = raised.value
            assert (error.path, error.record, error.offset) == (shard.path, 4, 184)
            assert str(error) == (
                f"Corrupt payload: record 4 of '{shard.path}' (record 9 of all) at byte 184 has 30 "
                f"bytes with masked CRC-32C 0x{found:08x}, but the file expects 0x{expected:08x}. "
                'Restore the file, or leave such records out with on_corruption="skip".'
            )


def test_iteration_goes_on_after_a_bad_payload(shard: Damaged, io: Any) -> None:
    shard.flip_bit(4 * FRAME + 12)
    records = iter(tfr.Reader(shard.path, io=io))
    assert [next(records) for _ in range(4)] == RECORDS[:4]
    with pytest.raises(tfr.CorruptRecordError, match="record 4 of"):
        next(records)
    assert list(records) == RECORDS[5:]


@pytest.mark.parametrize("size", [1, 3000, 20_000, 70_000, 600_000])
def test_a_bad_payload_of_any_size_is_raised(tmp_path: Path, io: Any, size: int) -> None:
    (tmp_path / "shard").write_bytes(shard_of([bytes(size)] * 3))
    reader = tfr.Reader(tmp_path / "shard", io=io)
    with open(tmp_path / "shard", "r+b") as file:
        file.seek(2 * (size + 16) - 5)  # the last byte of record 1
        file.write(b"x")
    for numbers in ([1], [0, 1, 2], [2, 1]):
        with pytest.raises(tfr.CorruptRecordError, match="record 1 of"):
            reader.read(numbers)
    assert reader.read([2, 0]).tolist() == [bytes(size)] * 2


@pytest.mark.parametrize("threads", [1, 4])
def test_the_first_bad_record_that_is_asked_for_is_named(
    tmp_path: Path, io: Any, threads: int
) -> None:
    data = bytearray(shard_of([b"0123"] * 3000))
    for bad in (2999, 1500, 700):
        data[bad * 20 + 13] ^= 1
    (tmp_path / "shard").write_bytes(data)
    reader = tfr.Reader(tmp_path / "shard", io=io, threads=threads)
    for numbers, first in ((range(3000), 700), (range(2999, -1, -1), 2999)):
        with pytest.raises(tfr.CorruptRecordError) as raised:
            reader.read(numbers)
        assert raised.value.record == first


def test_skipping_leaves_bad_payloads_out(shard: Damaged, io: Any) -> None:
    for bad in (0, 4, 9):
        shard.flip_bit(bad * FRAME + 12)
    reader = tfr.Reader(shard.path, io=io, on_corruption="skip")
    good = [1, 2, 3, 5, 6, 7, 8]
    assert len(reader) == 10
    assert list(reader) == [RECORDS[i] for i in good]
    batch = reader[::-1]
    assert batch.indices.tolist() == good[::-1]
    assert batch.tolist() == [RECORDS[i] for i in good[::-1]]
    assert reader.read([4, 0]).tolist() == []
    assert reader.skipped == [(shard.path, bad * FRAME, (bad + 1) * FRAME, 1) for bad in (0, 4, 9)]
    with pytest.raises(tfr.CorruptRecordError) as raised:
        reader[4]
    assert str(raised.value).endswith(
        'Restore the file. on_corruption="skip" leaves this record out of batches and iteration, '
        "but a request for this record alone returns it or is an error."
    )


def test_skipping_numbers_the_good_frames(shard: Damaged, io: Any) -> None:
    shard.flip_bit(2 * FRAME + 8)  # the length's CRC: its length leads to the next frame
    shard.flip_bit(6 * FRAME)  # the length itself: the number of lost records is unknown
    reader = tfr.Reader(shard.path, io=io, on_corruption="skip")
    good = [RECORDS[i] for i in (0, 1, 3, 4, 5, 7, 8, 9)]
    assert list(reader) == reader[:].tolist() == [reader[i] for i in range(8)] == good
    assert reader.skipped == [
        (shard.path, 2 * FRAME, 3 * FRAME, 1),
        (shard.path, 6 * FRAME, 7 * FRAME, None),
    ]
    assert reader.shards[0].lengths.tolist() == [30] * 8


def test_verify_header_trusts_payloads_but_not_headers(shard: Damaged, io: Any) -> None:
    shard.flip_bit(4 * FRAME + 12)
    assert tfr.Reader(shard.path, io=io, verify="header")[4] == b"104" + RECORDS[4][3:]
    shard.flip_bit(5 * FRAME + 8)
    for verify in ("full", "header"):
        with pytest.raises(tfr.CorruptRecordError):
            tfr.Reader(shard.path, io=io, verify=verify)  # type: ignore[arg-type]


def test_errors_pickle(shard: Damaged) -> None:
    import pickle

    shard.truncate_to(100)
    with pytest.raises(tfr.TruncatedRecordError) as raised:
        tfr.Reader(shard.path)
    copy = pickle.loads(pickle.dumps(raised.value))
    assert type(copy) is tfr.TruncatedRecordError
    assert (str(copy), copy.path, copy.record, copy.offset) == (
        str(raised.value),
        shard.path,
        2,
        92,
    )
    assert isinstance(copy, tfr.RecordError)


def test_compressed_shards_read_as_plain_ones_say_what_they_are(tmp_path: Path, io: Any) -> None:
    plain = shard_of(RECORDS)
    for name, data in (("GZIP", gzip.compress(plain)), ("ZLIB", zlib.compress(plain))):
        path = tmp_path / name
        path.write_bytes(data)
        for compression in (None, ""):
            with pytest.raises(tfr.CorruptRecordError, match=f"begins like a {name}-compressed"):
                tfr.Reader(path, io=io, compression=compression)  # type: ignore[arg-type]
        # The indexes that the earlier attempts kept do no harm.
        assert list(tfr.Reader(path, io=io)) == RECORDS


@pytest.mark.parametrize("level", range(10))
def test_zlib_of_every_level_is_recognised(tmp_path: Path, level: int) -> None:
    for records in (RECORDS, [b""], []):
        path = tmp_path / "shard"
        path.write_bytes(zlib.compress(shard_of(records), level))
        assert list(tfr.Reader(path, index="memory")) == records


@pytest.mark.parametrize("compression", ["GZIP", "ZLIB"])
def test_insisting_on_a_compression_that_is_not_there(tmp_path: Path, compression: Any) -> None:
    path = tmp_path / "plain"
    path.write_bytes(shard_of(RECORDS))
    text = f"does not begin like a {compression}-compressed file"
    for _ in range(2):
        with pytest.raises(tfr.CorruptRecordError, match=text) as info:
            tfr.Reader(path, compression=compression)
        assert (info.value.path, info.value.record, info.value.offset) == (str(path), 0, 0)
        assert list(tfr.Reader(path)) == RECORDS  # now the index exists


@pytest.mark.parametrize("compression", ["GZIP", "ZLIB"])
def test_a_shard_whose_first_byte_is_damaged_is_passed_over(
    tmp_path: Path, compression: Any, io: Any
) -> None:
    def pack(records: list[bytes]) -> bytes:
        data = shard_of(records)
        return gzip.compress(data) if compression == "GZIP" else zlib.compress(data)

    paths = [tmp_path / name for name in ("a", "b", "c")]
    for path, records in zip(paths, [[b"1", b"2"], [b"3"], [b"4"]], strict=True):
        path.write_bytes(pack(records))
    size = paths[1].stat().st_size
    paths[1].write_bytes(b"\xff" + paths[1].read_bytes()[1:])
    with pytest.raises(tfr.CorruptRecordError, match="does not begin like"):
        tfr.Reader(paths, compression=compression, io=io)
    for _ in range(2):
        reader = tfr.Reader(paths, compression=compression, io=io, on_corruption="skip")
        assert list(reader) == [b"1", b"2", b"4"]
        assert reader.skipped == [(str(paths[1]), 0, size, None)]
        assert [shard.compression for shard in reader.shards] == [compression] * 3
        assert [shard.num_bytes for shard in reader.shards][1] == size


def test_a_plain_shard_that_begins_like_zlib_is_plain(tmp_path: Path, io: Any) -> None:
    data = shard_of([b"x" * 376, b"y"])
    assert data[:2] == b"\x78\x01"
    path = tmp_path / "shard"
    path.write_bytes(data)
    assert list(tfr.Reader(path, io=io)) == [b"x" * 376, b"y"]
    # A damaged first header is corruption, not compression.
    for bit in range(16, 96):
        if 32 <= bit < 64:
            continue  # lengths beyond 4 GiB could as well be compressed data
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        with pytest.raises(tfr.CorruptRecordError):
            tfr.Reader(path, io=io)


def test_payloads_may_hold_anything(tmp_path: Path, io: Any) -> None:
    records = [frame(b"inner"), header(3), shard_of([b"a", b"b"]), b"\0" * 40, b"\xff" * 40]
    path = tmp_path / "shard"
    path.write_bytes(shard_of(records))
    assert list(tfr.Reader(path, io=io)) == records


def test_io_failures_are_os_errors(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="File name too long") as raised:
        tfr.Reader(tmp_path / ("x" * 300))
    assert raised.value.errno == errno.ENAMETOOLONG
    assert raised.value.filename == str(tmp_path / ("x" * 300))
    assert re.search(r"Opening '.*' failed", str(raised.value))
