"""Programs close descriptors that are not theirs, as daemons do: the numbers are other files then."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from closed_descriptors import in_child, other_files
from record_files import make_cold
from tfrecord_model import write_shard

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
    pytest.mark.skipif(sys.platform == "darwin", reason="forks"),
]

COUNT = 3000
RECORDS = [b"right %06d" % i * 20 for i in range(COUNT)]
#: Every frame is intact, and lies where a right one lies.
OTHERS = [b"wrong %06d" % i * 20 for i in range(COUNT)]


@pytest.fixture
def shard(tmp_path: Path) -> str:
    return write_shard(tmp_path / "shard", RECORDS)


@pytest.fixture
def other(tmp_path: Path) -> str:
    return write_shard(tmp_path / "other", OTHERS)


def load(reader: tfr.Reader, **options: Any) -> list[bytes]:
    with contextlib.closing(tfr.Loader(reader, 100, **options)) as loader:
        return [record for batch in loader for record in batch]


READS: dict[str, Callable[[tfr.Reader], Any]] = {
    "record": lambda reader: [reader[i] for i in range(0, COUNT, 7)] == RECORDS[::7],
    "batch": lambda reader: reader[::-1].tolist() == RECORDS[::-1],
    "iteration": lambda reader: list(reader) == RECORDS,
    "loader": lambda reader: load(reader, shuffle=False, threads=2) == RECORDS,
    "shuffled": lambda reader: sorted(load(reader, seed=1, threads=2)) == RECORDS,
}


@pytest.mark.parametrize("forks_after_opening", [True, False])
@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("io", ["pread", "mmap"])
def test_a_reader_never_reads_or_closes_another_file(
    shard: str, other: str, io: Any, read: str, forks_after_opening: bool
) -> None:
    def open_and_read() -> tfr.Reader:
        reader = tfr.Reader(shard, io=io)
        assert READS[read](reader)
        return reader

    reader = open_and_read() if forks_after_opening else None

    def work() -> bool:
        mine = reader or open_and_read()
        with other_files(other):
            make_cold(shard)
            right = READS[read](mine)
            mine.close()
        return bool(right)

    assert in_child(work)


def test_descriptors_are_closed_while_threads_read(shard: str, other: str) -> None:
    def work() -> bool:
        reader = tfr.Reader(shard, io="pread")
        loader = tfr.Loader(reader, 10, seed=1, threads=3, prefetch=2)
        found = []
        for step, batch in enumerate(loader):
            if step % 20 == 0:
                with other_files(other):
                    found += batch.tolist()
            else:
                found += batch.tolist()
        return sorted(found) == RECORDS

    assert in_child(work)


WRITERS: dict[str, Callable[[Path], Any]] = {
    "plain": lambda path: tfr.Writer(path),
    "gzip": lambda path: tfr.Writer(path, compression="GZIP"),
    "sharded": lambda path: tfr.ShardedWriter(path, num_shards=2),
}


@pytest.mark.parametrize("kind", WRITERS)
def test_a_writer_neither_changes_nor_publishes_nor_closes_another_file(
    tmp_path: Path, kind: str
) -> None:
    def work() -> str:
        out = tmp_path / "out"
        out.mkdir()
        writer = WRITERS[kind](out / "data")
        writer.write(b"first")
        other = tmp_path / "other"  # often gets the inode of the writer's nameless file
        os.closerange(3, 256)
        other.write_bytes(b"a line of the program's log\n" * 10)
        with other_files(other, os.O_RDWR):
            with pytest.raises(ValueError, match="closed the descriptor") as raised:
                for _ in range(50):
                    writer.write(os.urandom(100_000))
                writer.close()
            del writer
            assert not [each for each in out.iterdir() if each.is_file()]
        return str(raised.value)

    assert "Nothing was published" in in_child(work)
