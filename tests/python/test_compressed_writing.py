"""GZIP out: members of at most 1 MiB, with an index that every reader finds."""

from __future__ import annotations

import gzip
import random
import zlib
from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from tfrecord_model import shard_of

MIB = 1 << 20


def some_records() -> list[bytes]:
    """Records, 4 MiB in all. One is larger than a member."""
    rng = random.Random(3)
    records = [rng.randbytes(rng.randrange(900)) + b"ab" * rng.randrange(300) for _ in range(2500)]
    records[1000] = rng.randbytes(3 * MIB // 2)
    records[1001] = b"z" * 700_000
    return records


RECORDS = some_records()


def members_of(path: Path) -> list[bytes]:
    data, members = path.read_bytes(), []
    while data:
        member = zlib.decompressobj(31)
        members.append(member.decompress(data))
        data = member.unused_data
    return members


@pytest.mark.parametrize("level", [0, 1])
def test_bytes_do_not_depend_on_what_was_written_before(tmp_path: Path, level: int) -> None:
    written = []
    for number, records in enumerate([RECORDS[:900], [b"z" * 3 * MIB], RECORDS[:900]]):
        path = tmp_path / str(number)
        with tfr.Writer(path, compression="GZIP", level=level, index=False) as writer:
            writer.write_batch(records)
        written.append(path.read_bytes())
    assert written[0] == written[2]


@pytest.mark.parametrize("level", [None, 0, 1, 9])
def test_a_writer_makes_members_that_are_indexed(tmp_path: Path, level: int | None) -> None:
    path = tmp_path / "data" / "shard"
    path.parent.mkdir()
    with tfr.Writer(path, compression="GZIP", level=level) as writer:
        for record in RECORDS:
            writer.write(record)
    members = members_of(path)
    assert b"".join(members) == shard_of(RECORDS)
    assert max(map(len, members)) <= MIB
    reader = tfr.Reader(path, index="require")
    assert list(reader) == RECORDS
    assert reader[::-3].tolist() == RECORDS[::-3]
    # The writer's index equals a scan's index, except for checksums and flags. The flags say how
    # the index was made.
    index = reader.shards[0].index
    assert index is not None
    written = Path(index).read_bytes()
    Path(index).unlink()
    tfr.build_index(path)
    found = Path(index).read_bytes()
    for part in (slice(96), slice(104, 148), slice(149, None)):
        assert found[part] == written[part]


def test_no_records_make_one_empty_member(tmp_path: Path) -> None:
    tfr.Writer(tmp_path / "shard", compression="GZIP", index=False).close()
    assert members_of(tmp_path / "shard") == [b""]
    assert list(tfr.Reader(tmp_path / "shard", index="memory")) == []


@pytest.mark.parametrize("how", [{"num_shards": 3}, {"max_bytes": MIB}])
def test_a_sharded_writer_compresses_each_shard(tmp_path: Path, how: dict[str, int]) -> None:
    with tfr.ShardedWriter(tmp_path / "data" / "train", compression="GZIP", **how) as writer:
        writer.write_batch(RECORDS)
    reader = tfr.Reader(writer.paths, index="require")
    assert {shard.compression for shard in reader.shards} == {"GZIP"}
    assert sorted(reader) == sorted(RECORDS)
    for path in writer.paths:
        with gzip.open(path) as file:
            assert len(file.read()) > 0


@pytest.mark.parametrize("compression", ["GZIP", "ZLIB"])
def test_shuffle_converts_either_way(tmp_path: Path, compression: Any) -> None:
    source = tmp_path / "source"
    packer = zlib.compressobj(wbits={"GZIP": 31, "ZLIB": 15}[compression])
    source.write_bytes(packer.compress(shard_of(RECORDS)) + packer.flush())
    plain = tfr.shuffle(source, tmp_path / "plain" / "a", num_shards=2, seed=5)
    packed = tfr.shuffle(
        plain.paths, tmp_path / "packed" / "a", num_shards=2, compression="GZIP", level=1
    )
    for made, kind in ((plain, None), (packed, "GZIP")):
        reader = tfr.Reader(made.paths, index="require")
        assert {shard.compression for shard in reader.shards} == {kind}
        assert sorted(reader) == sorted(RECORDS)
    # The order does not depend on how the input was packed.
    source.write_bytes(shard_of(RECORDS))
    again = tfr.shuffle(source, tmp_path / "again" / "a", num_shards=2, seed=5)
    assert list(tfr.Reader(again.paths)) == list(tfr.Reader(plain.paths))


@pytest.mark.parametrize("cut", [3, 4000])
def test_shuffle_refuses_a_compressed_shard_that_was_cut_off(tmp_path: Path, cut: int) -> None:
    source = tmp_path / "source"
    source.write_bytes(gzip.compress(shard_of(RECORDS))[:-cut])
    with pytest.raises(tfr.TruncatedRecordError, match="inside a compressed member"):
        tfr.shuffle(source, tmp_path / "out" / "a", num_shards=1)
    assert not list((tmp_path / "out").glob("a-*"))
