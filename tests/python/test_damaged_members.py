"""GZIP shards of many members, some of them damaged: records after the damage are found."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

import tfrfast as tfr
from compressed_files import deflated
from tfrecord_model import frame, rested, shard_of

MIB = 1 << 20
MEMBER_BYTES = 60_000


def some_records(seed: int) -> list[bytes]:
    rng = random.Random(seed)
    return [rng.randbytes(rng.randrange(300)) + b"abcd" * rng.randrange(200) for _ in range(1500)]


RECORDS = some_records(1)


def cut_anywhere(records: list[bytes]) -> list[bytes]:
    """Cuts as `tfr.Writer` does, into smaller pieces."""
    data = shard_of(records)
    return [data[at : at + MEMBER_BYTES] for at in range(0, len(data), MEMBER_BYTES)]


def cut_between_records(records: list[bytes]) -> list[bytes]:
    """Cuts into one stream, as `tf.io.TFRecordWriter` does."""
    pieces = [b""]
    for record in records:
        if len(pieces[-1]) > MEMBER_BYTES:
            pieces.append(b"")
        pieces[-1] += frame(record)
    return pieces


CUTS = [cut_anywhere, cut_between_records]


def with_flipped_bit(member: bytes, at: int) -> bytes:
    at %= len(member)
    return member[:at] + bytes([member[at] ^ 16]) + member[at + 1 :]


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "no header": lambda member: bytes(10) + member[10:],
    "a bit of its data": lambda member: with_flipped_bit(member, len(member) // 2),
    "a bit of its checksum": lambda member: with_flipped_bit(member, -6),
    "a bit of its length": lambda member: with_flipped_bit(member, -1),
    "bytes missing": lambda member: member[:2000] + member[2100:],
    "bytes too many": lambda member: member[:2000] + bytes(100) + member[2000:],
    "a block of zeros": lambda member: member[:4096] + bytes(4096) + member[8192:],
    "cut off": lambda member: member[: len(member) // 3],
    "gone but for its header": lambda member: member[:10],
}


def intact_records(pieces: list[bytes], damaged: set[int]) -> list[bytes]:
    """The records that lie completely in undamaged pieces."""
    ends = [0]
    for piece in pieces:
        ends.append(ends[-1] + len(piece))
    intact, at = [], 0
    for record in RECORDS:
        end = at + 16 + len(record)
        touched = {i for i in range(len(pieces)) if at < ends[i + 1] and end > ends[i]}
        if not touched & damaged:
            intact.append(record)
        at = end
    return intact


def is_subsequence(part: list[bytes], whole: list[bytes]) -> bool:
    rest = iter(whole)
    return all(record in rest for record in part)


def check_what_is_read(path: Path, pieces: list[bytes], damaged: set[int]) -> None:
    with tfr.Reader(path, on_corruption="skip") as reader:
        records = list(reader)
        assert reader.skipped
        assert reader[::-1].tolist() == reader[:].tolist()[::-1]
    assert is_subsequence(records, RECORDS)
    assert is_subsequence(intact_records(pieces, damaged), records)
    with tfr.Reader(path, on_corruption="skip", index="require", io="pread") as again:
        assert list(again) == records
    with pytest.raises(tfr.RecordError, match="of the file"):
        list(tfr.Reader(path))


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("damage", DAMAGE)
def test_records_after_a_damaged_member_are_read(
    tmp_path: Path, cut: Callable[[list[bytes]], list[bytes]], damage: str
) -> None:
    pieces = cut(RECORDS)
    # The first piece keeps its header: without it, this would not be a GZIP file.
    for damaged in ({3}, {1 if damage == "no header" else 0}, {2, 3}, {1, 4}):
        members = [deflated(piece, "GZIP") for piece in pieces]
        for number in damaged:
            members[number] = DAMAGE[damage](members[number])
        path = tmp_path / f"shard-{'-'.join(map(str, sorted(damaged)))}"
        path.write_bytes(b"".join(members))
        check_what_is_read(path, pieces, damaged)


def test_so_are_those_of_the_writer(tmp_path: Path) -> None:
    rng = random.Random(2)
    records = [rng.randbytes(3000) for _ in range(2000)]  # 6 MB: six members
    with tfr.Writer(tmp_path / "shard", compression="GZIP", index=False) as writer:
        writer.write_batch(records)
    data = bytearray((tmp_path / "shard").read_bytes())
    for at in (MIB * 3 // 2, MIB * 9 // 2):
        data[at : at + 100] = bytes(100)
    (tmp_path / "shard").write_bytes(data)
    with tfr.Reader(tmp_path / "shard", on_corruption="skip") as reader:
        read = list(reader)
    assert is_subsequence(read, records)
    frames_a_member = MIB // 3016
    assert len(read) >= 2000 - 2 * (frames_a_member + 2)
    assert read[-200:] == records[-200:]


def test_the_gap_is_reported(tmp_path: Path) -> None:
    pieces = cut_between_records(RECORDS)
    members = [deflated(piece, "GZIP") for piece in pieces]
    members[1] = bytes(len(members[1]))
    path = tmp_path / "shard"
    path.write_bytes(b"".join(members))
    rested(path)  # so that the index of the whole shard, which lists later records, is used
    with tfr.Reader(path, on_corruption="skip") as reader:
        (gap,) = reader.skipped
        assert (gap.path, gap.begin, gap.end, gap.records) == (
            str(path),
            *2 * [len(pieces[0])],
            None,
        )
        assert len(list(reader)) == len(intact_records(pieces, {1}))
    cut_at = len(members[0]) + len(members[1]) + 10
    with pytest.raises(tfr.CorruptRecordError) as raised:
        tfr.Reader(path)
    place = f"begins at byte {len(pieces[0])} of the uncompressed stream (inflated from byte {cut_at} of"
    assert place in str(raised.value)
    assert raised.value.offset == len(pieces[0])


def test_a_record_is_not_pieced_together_over_a_gap(tmp_path: Path) -> None:
    """The members around the damage begin and end inside records that look alike."""
    records = [b"%07d" % i * 1000 for i in range(60)]
    data = shard_of(records)
    pieces = [data[at : at + 7016 * 3] for at in range(3508, len(data), 7016 * 3)]
    members = [deflated(piece, "GZIP") for piece in [data[:3508], *pieces]]
    members[4] = b"\0" * 50
    (tmp_path / "shard").write_bytes(b"".join(members))
    with tfr.Reader(tmp_path / "shard", on_corruption="skip") as reader:
        # Members begin in the middle of records. The damage cuts records 9 and 12.
        assert list(reader) == records[:9] + records[13:]


def test_members_inside_of_records_are_not_taken_for_the_shards(tmp_path: Path) -> None:
    inner = deflated(b"no frame at all " * 100, "GZIP")
    records = [b"%05d" % i + inner + bytes(300) for i in range(600)]
    pieces = [shard_of(records[at : at + 100]) for at in range(0, 600, 100)]
    # Stored without compression, so that the inner members are visible.
    members = [deflated(piece, "GZIP", 0) for piece in pieces]
    members[2] = members[2][:30_000] + b"damage" + members[2][30_000:]
    (tmp_path / "shard").write_bytes(b"".join(members))
    with tfr.Reader(tmp_path / "shard", on_corruption="skip") as reader:
        read = list(reader)
    assert is_subsequence(read, records)
    assert is_subsequence(records[:200] + records[300:], read)


def test_the_cost_of_false_members_is_bounded(tmp_path: Path) -> None:
    """Each of 400,000 false members reaches to the end of the file. Together they have 1.6 TB."""
    unit = b"\x1f\x8b\x08\0" + bytes(6) + b"\0\xff\xff\0\0" + bytes(5)
    assert (5 + 0xFFFF) % len(unit) == 0  # one stored block leads to another's beginning
    good = deflated(shard_of([b"one", b"two"]), "GZIP")
    data = good + b"damage" + unit * 400_000 + good
    (tmp_path / "shard").write_bytes(data)
    with tfr.Reader(tmp_path / "shard", on_corruption="skip") as reader:
        assert list(reader) == [b"one", b"two"]
        assert len(reader.skipped) == 1


def test_nothing_is_looked_for_after_damaged_zlib(tmp_path: Path) -> None:
    """ZLIB streams begin with two common bytes, and TensorFlow reads only the first stream."""
    stream = zlib.compress(shard_of([b"one"]))
    (tmp_path / "shard").write_bytes(stream + b"damage" + stream)
    with tfr.Reader(tmp_path / "shard", on_corruption="skip") as reader:
        assert list(reader) == [b"one"]
