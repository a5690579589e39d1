"""Long damage: quick findings, slow findings, and their interruption."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from record_files import flip_length_byte, frame_starts, some_records, write_shard
from tfrecord_model import frame, rested, shard_of
from tfrfast.base.progress import ProgressBar
from tfrfast.cli import main

RECORDS = some_records(100)
GOOD = shard_of(RECORDS)


@pytest.fixture
def sparse(tmp_path: Path) -> str:
    """Good records before more zeros than a walk could read."""
    path = tmp_path / "sparse"
    with open(path, "wb") as file:
        file.write(GOOD)
        file.truncate(1 << 43)
    return str(path)


@pytest.fixture
def slow(tmp_path: Path) -> str:
    """Good records before bytes, half of which might begin a record. A walk takes seconds."""
    path = tmp_path / "slow"
    with open(path, "wb") as file:
        file.write(GOOD)
        for _ in range(256):
            file.write(b"\1\0\0\0\0\0\0\0" * (1 << 17))
    return str(path)


@pytest.fixture
def inflating(tmp_path: Path) -> str:
    """Good records before zeros, compressed: 250 KB that inflate to 256 MiB."""
    path = tmp_path / "inflating.gz"
    path.write_bytes(gzip.compress(GOOD) + 16 * gzip.compress(bytes(16 << 20)))
    return str(path)


@pytest.fixture
def broken(tmp_path: Path) -> str:
    """A damaged member, and after it bytes that look like further members."""
    false_member = gzip.compress(bytes(8 << 20))[:-8] + b"notcrc32"
    path = tmp_path / "broken.gz"
    path.write_bytes(gzip.compress(GOOD)[:-8] + b"notcrc32" + 50 * false_member)
    return str(path)


def test_a_reader_that_raises_does_not_look_for_what_follows(
    sparse: str, slow: str, io: Any, cache: Path
) -> None:
    for path, text in [
        (sparse, "No good record follows."),
        (slow, "No good record begins in the next 1048577 bytes; later bytes were not"),
    ]:
        with pytest.raises(tfr.CorruptRecordError, match=text) as info:
            tfr.Reader(path, io=io)
        assert (info.value.record, info.value.offset) == (100, len(GOOD))
    assert list(cache.rglob("index/*/index")) == []


def test_nor_do_the_commands_and_the_loader(
    sparse: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["count", sparse]) == 2
    assert main(["cat", "--records=90:", sparse]) == 2
    assert "is corrupt: the length of record 100" in capsys.readouterr().err
    with pytest.raises(tfr.CorruptRecordError):
        tfr.Loader(sparse, 10)


def test_a_reader_that_skips_passes_over_holes(sparse: str, io: Any) -> None:
    reader = tfr.Reader(sparse, io=io, on_corruption="skip")
    assert list(reader) == RECORDS
    assert reader.skipped == [(sparse, len(GOOD), 1 << 43, None)]


def test_what_lies_between_holes_is_found(tmp_path: Path, io: Any) -> None:
    path = tmp_path / "islands"
    places = [1 << 33, (1 << 40) + 4095, (1 << 42) + 1]
    with open(path, "wb") as file:
        for number, place in enumerate(places):
            file.seek(place)
            file.write(frame(b"%d" % number))
        file.truncate(1 << 43)
    reader = tfr.Reader(path, io=io, on_corruption="skip")
    assert list(reader) == [b"0", b"1", b"2"]
    assert [reader.locate(number).offset for number in range(3)] == places


def test_verifying_names_the_damage(sparse: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", sparse]) == 1
    assert f"{len(GOOD):,}  {1 << 43:,}" in capsys.readouterr().out


def test_the_next_record_is_named_where_it_is_near(tmp_path: Path) -> None:
    path = write_shard(tmp_path / "shard", RECORDS)
    flip_length_byte(path, RECORDS, 50)
    next_one = frame_starts(RECORDS)[51]
    with pytest.raises(tfr.CorruptRecordError, match=f"next good record begins at byte {next_one}"):
        tfr.Reader(path)


def test_an_index_of_the_whole_shard_says_more(tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "shard"
    path.write_bytes(GOOD + bytes(3 << 20) + GOOD)
    rested(path)
    with pytest.raises(tfr.CorruptRecordError, match="were not examined"):
        tfr.Reader(path)
    assert list(tfr.Reader(path, on_corruption="skip")) == 2 * RECORDS
    assert len(list(cache.rglob("index/*/index"))) == 1
    with pytest.raises(tfr.CorruptRecordError, match="The next good record begins at byte"):
        tfr.Reader(path)


@pytest.mark.parametrize("kind", ["slow", "inflating", "broken"])
@pytest.mark.parametrize("walk", ["Reader", "Reader of several", "verify", "build_index"])
def test_a_long_walk_can_be_ended(
    kind: str, walk: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = request.getfixturevalue(kind)
    told: list[tuple[int, int]] = []

    def interrupt(_: ProgressBar, done: int, total: int) -> None:
        told.append((done, total))
        if done < total:
            raise KeyboardInterrupt

    monkeypatch.setattr(ProgressBar, "update", interrupt)
    other = Path(path).with_name("other")
    other.symlink_to(path)
    walks: dict[str, Callable[[], Any]] = {
        "Reader": lambda: tfr.Reader(path, on_corruption="skip"),
        "Reader of several": lambda: tfr.Reader([path, other], on_corruption="skip", threads=2),
        "verify": lambda: main(["verify", path]),
        "build_index": lambda: tfr.build_index(path),
    }
    if walk == "verify":
        assert walks[walk]() == 130
    else:
        with pytest.raises(KeyboardInterrupt):
            walks[walk]()
    assert len(told) == 1


def test_a_compressed_shard_raises_at_once(inflating: str, broken: str, cache: Path) -> None:
    for path in [inflating, broken]:
        with pytest.raises(tfr.CorruptRecordError) as info:
            tfr.Reader(path)
        assert info.value.record == 100
    assert list(cache.rglob("index/*/index")) == []


def test_what_follows_compressed_damage_is_still_found(tmp_path: Path) -> None:
    path = tmp_path / "shard.gz"
    path.write_bytes(gzip.compress(GOOD + b"damage" + bytes(5 << 20) + GOOD) + gzip.compress(GOOD))
    reader = tfr.Reader(path, on_corruption="skip")
    assert list(reader) == 3 * RECORDS
    assert [len(GOOD)] == [each.begin for each in reader.skipped]
