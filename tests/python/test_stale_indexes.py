"""Indexes of a shard's earlier state: they never give wrong records, and cost at most one scan."""

import gzip
import os
import shutil
import time
import warnings
from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from changed_files import replace, rewrite, with_old_mtime
from tfrecord_model import rested, shard_of, write_shard
from tfrfast import _native

COUNT = 10_000
RECORDS = [b"record %06d" % i for i in range(COUNT)]
OTHERS = [b"other  %06d" % i for i in range(COUNT)]
# The same number of bytes with one record less, away from the headers that opening looks at.
ONE_LESS = [*RECORDS[:5001], RECORDS[5001] + bytes(16) + RECORDS[5002], *RECORDS[5003:]]


def copy(path: Path, data: bytes) -> None:
    """Copies like `cp -p`, from a file with the same modification time."""
    other = path.with_name("other")
    other.write_bytes(data)
    times = os.stat(path)
    os.utime(other, ns=(times.st_atime_ns, times.st_mtime_ns))
    shutil.copy2(other, path)


ROUTES = {
    "rewritten": rewrite,
    "replaced": replace,
    "rewritten, time kept": with_old_mtime(rewrite),
    "replaced, time kept": with_old_mtime(replace),
    "copied with the time": copy,
}
routes = pytest.mark.parametrize("route", ROUTES)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    return Path(write_shard(tmp_path / "data" / "shard", RECORDS))


def bytes_read() -> int:
    """Returns the number of bytes that this process has read."""
    return int(Path("/proc/self/io").read_text().split("rchar: ")[1].split()[0])


def scans(path: Path, **options: Any) -> bool:
    """Returns whether opening walks through the whole shard."""
    before = bytes_read()
    tfr.Reader(path, io="pread", **options).close()
    return bytes_read() - before >= path.stat().st_size


def tells(path: Path, route: str) -> bool:
    """True if the reader notices the change. If device, inode and ctime do not count, a file of the
    same time and size is the same file.
    """
    return "time" not in route or _native.identity_lasts(os.fsencode(path))


@routes
@pytest.mark.parametrize("place", ["cache", "sibling", "folder"])
def test_records_of_the_past_are_never_read(
    path: Path, tmp_path: Path, io: Any, route: str, place: str
) -> None:
    options: dict[str, Any] = {"io": io}
    if place == "folder":
        options["index_folder"] = tmp_path / "indexes"
    for now in (ONE_LESS, RECORDS, OTHERS):
        if place == "sibling":
            tfr.build_index(path)
        tfr.Reader(path, **options)
        ROUTES[route](path, shard_of(now))
        if not tells(path, route):
            continue
        for _ in range(2):
            reader = tfr.Reader(path, **options)
            assert len(reader) == len(now)
            assert list(reader) == now
        assert reader[len(now) - 1] == now[-1]


@routes
def test_require_takes_what_a_scan_confirms_and_nothing_else(
    path: Path, io: Any, route: str
) -> None:
    tfr.build_index(path)
    ROUTES[route](path, shard_of(OTHERS))  # at the same boundaries
    reader = tfr.Reader(path, index="require", io=io)
    assert list(reader) == OTHERS
    tfr.build_index(path)
    ROUTES[route](path, shard_of(ONE_LESS))
    if tells(path, route):
        with pytest.raises(tfr.StaleIndexError, match="was made for another state of") as raised:
            tfr.Reader(path, index="require", io=io)
        assert raised.value.path == str(path)


def test_data_copied_without_their_times_cost_one_scan(path: Path, tmp_path: Path) -> None:
    tfr.build_index(path)
    shutil.copytree(path.parent, tmp_path / "there", copy_function=shutil.copy)
    shutil.copytree(tmp_path / "data.tfrfast", tmp_path / "there.tfrfast")
    there = Path(rested(tmp_path / "there" / "shard"))
    assert scans(there, index="require")
    for use in ("require", "auto"):
        assert not scans(there, index=use)
        reader = tfr.Reader(there, index=use)
        assert reader.shards[0].index == _native.cached_index_path(os.fsencode(there))
        assert list(reader) == RECORDS
    os.utime(there)  # a file that was just touched is not believed until it has rested
    assert scans(there, index="require")
    assert scans(there, index="require")
    rested(there)
    assert scans(there, index="require")
    assert not scans(there, index="require")


def test_one_that_fits_costs_no_scan(path: Path, tmp_path: Path) -> None:
    assert scans(path)
    assert not scans(path)
    tfr.build_index(path)
    assert not scans(path, index="require")
    assert scans(path, index_folder=tmp_path / "indexes")
    assert not scans(path, index_folder=tmp_path / "indexes")


@pytest.mark.parametrize("compression", [None, "GZIP"])
@pytest.mark.parametrize("sync", [True, False])
def test_what_was_written_here_is_never_scanned(
    tmp_path: Path, sync: bool, compression: Any
) -> None:
    (tmp_path / "data").mkdir()
    with tfr.Writer(tmp_path / "data" / "one", sync=sync, compression=compression) as writer:
        writer.write_batch(RECORDS)
    prefix = tmp_path / "data" / "set"
    with tfr.ShardedWriter(prefix, num_shards=2, sync=sync, compression=compression) as sharded:
        sharded.write_batch(RECORDS * 2)
    tfr.shuffle(
        [tmp_path / "data" / "one"],
        tmp_path / "data" / "shuffled",
        num_shards=1,
        sync=sync,
        compression=compression,
    )
    paths = sorted((tmp_path / "data").glob("*-of-*"))
    assert len(paths) == 3
    for each in [tmp_path / "data" / "one", *paths]:
        assert not scans(each, index="require")


def test_what_is_changed_in_the_tick_it_was_published_in_is_noticed(path: Path) -> None:
    for i in range(20):
        with tfr.Writer(path, sync=False, overwrite=True) as writer:
            writer.write_batch(RECORDS[:100])
        joined = RECORDS[50] + bytes(16) + RECORDS[51]
        rewrite(path, shard_of([*RECORDS[:50], joined, *RECORDS[52:100]]))
        reader = tfr.Reader(path)
        assert len(reader) == 99, i


def test_gzip_made_elsewhere(tmp_path: Path, io: Any) -> None:
    (tmp_path / "data").mkdir()
    path = tmp_path / "data" / "shard"

    def write(records: list[bytes]) -> None:
        # Stored without compression, so that sizes stay equal.
        path.write_bytes(gzip.compress(shard_of(records), 0, mtime=0))
        rested(path)

    write(RECORDS)
    size = path.stat().st_size
    tfr.build_index(path)
    assert not scans(path, index="require")
    write(RECORDS)
    assert scans(path, index="require")
    assert not scans(path, index="require")
    write(OTHERS)
    assert path.stat().st_size == size
    assert list(tfr.Reader(path, index="require", io=io)) == OTHERS
    write(ONE_LESS)
    assert path.stat().st_size == size
    with pytest.raises(tfr.StaleIndexError, match="was made for another state of"):
        tfr.Reader(path, index="require", io=io)
    assert list(tfr.Reader(path, io=io)) == ONE_LESS
    assert not scans(path)


def test_two_seconds_of_rest_are_all_it_takes(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    path = tmp_path / "data" / "shard"
    path.write_bytes(shard_of(RECORDS))
    assert scans(path)
    assert scans(path)
    while time.time() < path.stat().st_mtime + 2.1:
        time.sleep(0.1)
    assert scans(path)
    assert not scans(path)


def test_nothing_is_warned_of_in_the_ordinary(path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tfr.build_index(path)
        tfr.Reader(path, index="require")
        tfr.Reader(path)
