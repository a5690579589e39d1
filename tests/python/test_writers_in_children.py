"""A forked child shares its parent's open files, and must neither touch them nor wait for anything."""

import contextlib
import gc
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from children import run_program
from patience import PATIENCE_S

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

WRITERS = [
    'tfr.Writer(data / "a")',
    'tfr.Writer(data / "a", compression="GZIP")',
    'tfr.ShardedWriter(data / "a", num_shards=2)',
    'tfr.ShardedWriter(data / "a", max_bytes=50)',
]


def make(writer: str, data: Path) -> Any:
    return eval(writer, {"tfr": tfr, "data": data})


def run_in_child(work: Callable[[], Any]) -> int:
    """Returns 0 if `work` returned, 1 if an error named the process that made the writer, and
    otherwise another number.
    """
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        signal.alarm(PATIENCE_S)  # a child that hangs dies
        try:
            work()
        except ValueError as error:
            told = f"made in process {parent}, and this is process {os.getpid()}, " in str(error)
            os._exit(1 if told else 2)
        except BaseException:
            os._exit(3)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def records_in(data: Path) -> list[bytes]:
    with tfr.Reader(f"{data}/*", index="memory") as reader:
        return sorted(reader)


@pytest.mark.parametrize("kind", WRITERS)
def test_a_child_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    with make(kind, tmp_path) as writer:
        writer.write(b"one")
        attempts = [
            lambda: writer.write(b"two"),
            lambda: writer.write(bytes(5_000_000)),
            writer.close,
            lambda: writer.write_batch([b"two"]),
        ]
        for attempt in attempts:
            assert run_in_child(attempt) == 1
        writer.write(b"three")
    assert records_in(tmp_path) == [b"one", b"three"]
    assert run_in_child(writer.close) == 0  # the writer is closed already


@pytest.mark.parametrize("kind", WRITERS)
def test_a_child_lets_go_of_it_without_a_trace(tmp_path: Path, kind: str) -> None:
    holders = [make(kind, tmp_path)]
    holders[0].write(b"one")

    def drop() -> None:
        holders.clear()
        gc.collect()

    def abort() -> None:
        assert (holders[0].closed, holders[0].num_records) == (False, 1)
        holders[0].abort()

    before = sorted(os.listdir(tmp_path))
    assert run_in_child(drop) == 0
    assert run_in_child(abort) == 0
    assert sorted(os.listdir(tmp_path)) == before
    with holders[0] as writer:
        writer.write(b"two")
    assert records_in(tmp_path) == [b"one", b"two"]


# Its shards have temporary names.
MORE_SHARDS_THAN_MAY_BE_OPEN = 'tfr.ShardedWriter(data / "a", num_shards=9)'

SCRIPT = """
import os, pathlib, resource, sys
import tfrfast as tfr
data = pathlib.Path(sys.argv[1])
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
with eval(sys.argv[2]) as writer:
    writer.write(b"one")
    child = os.fork()
    if child == 0:
        sys.exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    writer.write(b"two")
"""


@pytest.mark.parametrize("kind", [*WRITERS, MORE_SHARDS_THAN_MAY_BE_OPEN])
def test_a_child_that_ends_leaves_it_to_its_parent(tmp_path: Path, kind: str) -> None:
    """The child leaves `with` and the interpreter as any program does."""
    done = run_program(SCRIPT, tmp_path, kind, PYTHONWARNINGS="always::ResourceWarning")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert records_in(tmp_path) == [b"one", b"two"]


@contextlib.contextmanager
def running(work: Callable[[], Any]) -> Iterator[None]:
    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def test_a_child_does_not_wait_for_a_thread_that_it_does_not_have(tmp_path: Path) -> None:
    with tfr.Writer(tmp_path / "shard", sync=False) as writer:
        stop = threading.Event()

        def write() -> None:
            records = [bytes(600_000)] * 4
            while not stop.is_set():
                writer.write_batch(records)

        with running(write), running(write):
            try:
                outcomes = {run_in_child(lambda: writer.closed) for _ in range(5)}
                refused = {run_in_child(writer.close) for _ in range(5)}
                forgotten = {run_in_child(writer.abort) for _ in range(5)}
            finally:
                stop.set()
        assert (outcomes, refused, forgotten) == ({0}, {1}, {0})
        writer.abort()
