"""Programs close descriptors that are not theirs, as daemons do: the numbers are other files then."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from patience import PATIENCE_S
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


#: The numbers that the program closes: all but the standard streams.
CLOSED = range(3, 256)


class OtherFiles:
    """The files that the program opens instead: they get the numbers that it has closed."""

    def __init__(self, path: str | Path, mode: int = os.O_RDONLY) -> None:
        os.closerange(CLOSED.start, CLOSED.stop)
        self._files = [os.open(path, mode) for _ in range(64)]
        self._path = Path(path)
        self._bytes = self._path.read_bytes()

    def check(self) -> None:
        """Every file is still open, still that file, and unchanged."""
        for each in self._files:
            assert os.path.samestat(os.fstat(each), os.stat(self._path)), "a file was closed"
        assert self._path.read_bytes() == self._bytes, "a file was changed"


@contextlib.contextmanager
def other_files(path: str | Path, mode: int = os.O_RDONLY) -> Iterator[None]:
    """Closes the descriptors and opens `path` instead; at the end, checks that file."""
    files = OtherFiles(path, mode)
    yield
    files.check()


def in_child(work: Callable[[], Any]) -> Any:
    """Returns the result of `work` in a forked child; its exceptions are raised here.

    Only in a child may a test close every descriptor.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(PATIENCE_S)  # a child that hangs dies
        answer = os.dup2(writing, CLOSED.stop)
        try:
            result = pickle.dumps((work(), None))
        except BaseException:
            result = pickle.dumps((None, traceback.format_exc()))
        with open(answer, "wb") as file:
            file.write(result)
        os._exit(0)
    os.close(writing)
    with open(reading, "rb") as file:
        said = file.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status == 0, f"the child ended with {status}"
    value, failure = pickle.loads(said)
    assert failure is None, failure
    return value


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
