"""Shards that grow, shrink or are replaced: right records or an error, never wrong bytes."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from tfrecord_model import shard_of, write_shard
from tfrfast import _native

OLD = [b"old%02d" % i * 4 for i in range(50)]
# The same number of bytes, other lengths.
NEW = [b"n" * 10] + [b"new%02d" % i * 4 for i in range(48)] + [b"n" * 30]
# The same number of bytes, the same lengths.
SAME = [b"sam%02d" % i * 4 for i in range(50)]

Change = Callable[[Path, bytes], None]


def rewrite(path: Path, data: bytes) -> None:
    with open(path, "r+b") as file:
        file.write(data)
        file.truncate()


def replace(path: Path, data: bytes) -> None:
    other = path.with_name("other")
    other.write_bytes(data)
    os.replace(other, path)


def with_old_mtime(change: Change) -> Change:
    """Returns the change, followed by a restoration of the modification time."""

    def changed(path: Path, data: bytes) -> None:
        times = os.stat(path)
        change(path, data)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    return changed


CHANGES = {
    "rewritten": rewrite,
    "replaced": replace,
    "rewritten, mtime set back": with_old_mtime(rewrite),
    "replaced, mtime set back": with_old_mtime(replace),
}

changes = pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
verifies = pytest.mark.parametrize("verify", ["full", "header"])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    assert len(shard_of(OLD)) == len(shard_of(NEW)) == len(shard_of(SAME))
    return Path(write_shard(tmp_path / "shard", OLD))


def records_or_errors(reader: tfr.Reader) -> list[Any]:
    outcomes: list[Any] = []
    for number in range(len(reader)):
        try:
            outcomes.append(reader[number])
        except (tfr.StaleIndexError, tfr.CorruptRecordError, tfr.TruncatedRecordError) as error:
            assert str(reader.shards[0].path) in str(error)
            outcomes.append(type(error))
    return outcomes


def shows_change(path: Path, mtime_kept: bool) -> bool:
    """Whether the filesystem shows that a file of the same size was changed before it is opened."""
    return not mtime_kept or _native.identity_lasts(os.fsencode(path))


@changes
@verifies
def test_other_records_under_an_open_reader(path: Path, io: Any, verify: Any, change: Any) -> None:
    reader = tfr.Reader(path, io=io, verify=verify)
    change(path, shard_of(NEW))
    outcomes = records_or_errors(reader)
    assert outcomes[0] in (OLD[0], tfr.StaleIndexError)
    # A file that was only unlinked may still be read: all bytes are the old bytes.
    assert outcomes == OLD or not any(isinstance(each, bytes) for each in outcomes)


@changes
@verifies
def test_records_of_the_same_lengths(path: Path, io: Any, verify: Any, change: Any) -> None:
    reader = tfr.Reader(path, io=io, verify=verify)
    change(path, shard_of(SAME))
    outcomes = records_or_errors(reader)
    assert outcomes in (OLD, SAME, [tfr.StaleIndexError] * 50)
    assert list(tfr.Reader(path, io=io, verify=verify)) == SAME


@verifies
def test_a_shard_that_grows(path: Path, io: Any, verify: Any) -> None:
    reader = tfr.Reader(path, io=io, verify=verify)
    with open(path, "ab") as file:
        file.write(shard_of([b"more"]))
    assert list(reader) == OLD
    assert list(tfr.Reader(path, io=io, verify=verify)) == [*OLD, b"more"]


@verifies
def test_a_shard_that_shrinks(path: Path, io: Any, verify: Any) -> None:
    frame = len(OLD[0]) + 16
    reader = tfr.Reader(path, io=io, verify=verify)
    skipping = tfr.Reader(path, io=io, verify=verify, on_corruption="skip")
    os.truncate(path, 20 * frame + 30)
    outcomes = records_or_errors(reader)
    assert outcomes == OLD[:20] + [tfr.TruncatedRecordError] * 30
    with pytest.raises(tfr.TruncatedRecordError):  # a failure is not damage
        skipping.read([30, 2])
    assert skipping.skipped == []
    with pytest.raises(tfr.TruncatedRecordError, match="was truncated"):
        reader[20]
    with pytest.raises(tfr.TruncatedRecordError, match="record 20 at byte 720"):
        tfr.Reader(path, io=io)
    os.truncate(path, 10 * frame)
    assert list(tfr.Reader(path, io=io, verify=verify)) == OLD[:10]


def test_a_shard_that_vanishes(path: Path, io: Any) -> None:
    reader = tfr.Reader(path, io=io)
    os.unlink(path)
    try:
        assert list(reader) == OLD  # still mapped, or still open
    except FileNotFoundError as error:
        assert io == "pread"
        assert error.filename == str(path)


@pytest.mark.parametrize("touched", [True, False])
def test_a_damaged_header_is_damage_even_if_the_shard_was_touched(
    tmp_path: Path, io: Any, touched: bool
) -> None:
    records = [b"record %03d" % i for i in range(300)]
    path = Path(write_shard(tmp_path / "long", records))
    frame = len(records[0]) + 16
    before = tfr.Reader(path, io=io, on_corruption="skip")
    data = bytearray(shard_of(records))
    bad = [101, 153, 154]  # none of the headers that opening compares
    for number in bad:
        data[number * frame + 9] ^= 1
    (rewrite if touched else with_old_mtime(rewrite))(path, bytes(data))
    good = [record for number, record in enumerate(records) if number not in bad]
    one_by_one = [(number * frame, (number + 1) * frame, 1) for number in bad]
    assert list(before) == good
    assert [(each.begin, each.end, each.records) for each in before.skipped] == one_by_one
    after = tfr.Reader(path, io=io, on_corruption="skip")
    assert list(after) == good
    skipped = [(each.begin, each.end, each.records) for each in after.skipped]
    if shows_change(path, mtime_kept=not touched):
        # A scan finds the beginning of the next good record, and cannot count earlier records.
        assert skipped == [one_by_one[0], (153 * frame, 155 * frame, None)]
        with pytest.raises(tfr.CorruptRecordError, match="is corrupt: the length of record 101"):
            tfr.Reader(path, io=io)
    else:
        assert skipped == one_by_one
        with pytest.raises(tfr.CorruptRecordError, match="Corrupt header: record 101"):
            tfr.Reader(path, io=io)[101]


def test_records_that_moved_are_no_damage(tmp_path: Path, io: Any) -> None:
    records = [b"record %03d" % i for i in range(300)]
    path = Path(write_shard(tmp_path / "long", records))
    reader = tfr.Reader(path, io=io, on_corruption="skip")
    # Three records divide their bytes in another way. From 154 on, the index is right about headers.
    moved = [*records[:151], b"longer than it was", b"short", b"rest", *records[154:]]
    moved[153] = moved[153].ljust(30 - len(moved[151]) - len(moved[152]))
    assert len(shard_of(moved)) == len(shard_of(records))
    rewrite(path, shard_of(moved))
    later = path.stat().st_mtime + 2  # even where the filesystem's clock ticks slowly
    os.utime(path, (later, later))
    for number in (151, 152, 153):
        with pytest.raises(tfr.StaleIndexError):
            reader[number]
        with pytest.raises(tfr.StaleIndexError):
            reader.read([number])


def test_the_stale_error_says_what_helps_and_it_helps(path: Path, io: Any) -> None:
    # Changes none of the headers that opening compares.
    changed = [*OLD[:10], OLD[10] + b"+", OLD[11][:-1], *OLD[12:]]
    reader = tfr.Reader(path, io=io)
    with_old_mtime(rewrite)(path, shard_of(changed))
    stale = [reader]
    if not shows_change(path, mtime_kept=True):
        stale.append(tfr.Reader(path, io=io))
    for each in stale:
        assert each[9] == OLD[9]
        with pytest.raises(tfr.StaleIndexError) as raised:
            each[10]
        assert f"record 10 of '{path}' at byte 360 should have 20 bytes, but the file says 21" in (
            str(raised.value)
        )
        assert f"`tfrfast index --force {path}`" in str(raised.value)
        assert (raised.value.record, raised.value.offset) == (10, 360)
    tfr.build_index(path, force=True)
    assert list(tfr.Reader(path, io=io)) == changed
