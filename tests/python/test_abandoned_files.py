"""A writer removes the files of a killed writer in its folder, and no other file."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import tfrfast as tfr

SHARDS = 20

# More shards than may be open at once have temporary names from the beginning.
SCRIPT = f"""
import resource, sys
import tfrfast as tfr
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
with tfr.ShardedWriter(sys.argv[1] + "/a", num_shards={SHARDS}) as writer:
    writer.write_batch([bytes(1000)] * {SHARDS})
    print("written", flush=True)
    sys.stdin.read()
"""


@contextlib.contextmanager
def another_writer(data: Path) -> Iterator[subprocess.Popen[str]]:
    """A writer that has written its records. It publishes them when its input ends."""
    writer = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(data)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "written\n"
        yield writer


def kill_a_writer(data: Path) -> list[Path]:
    """Returns the files that the killed writer leaves."""
    with another_writer(data) as writer:
        writer.kill()
        writer.wait()
    return temporary_files(data)


def temporary_files(data: Path) -> list[Path]:
    folders = [data, Path(f"{data}.tfrfast")]
    return sorted(path for folder in folders for path in folder.glob(".tmp-*"))


def write_something(data: Path) -> None:
    with tfr.Writer(data / "something") as writer:
        writer.write(b"one")


def test_the_next_writer_removes_what_a_killed_one_left(data: Path) -> None:
    assert len(kill_a_writer(data)) == SHARDS
    write_something(data)
    assert temporary_files(data) == []


def test_a_writer_that_lives_is_left_alone(data: Path) -> None:
    with another_writer(data) as writer:
        its_files = temporary_files(data)
        assert len(its_files) == SHARDS
        write_something(data)
        assert temporary_files(data) == its_files
        writer.communicate("")
        assert writer.returncode == 0
    with tfr.Reader(f"{data}/a-*", index="require") as reader:
        assert list(reader) == [bytes(1000)] * SHARDS
    assert temporary_files(data) == []


def test_what_may_be_somebodys_is_left_alone(data: Path) -> None:
    left, *others = kill_a_writer(data)
    for path in others:
        path.unlink()
    prefix, boot, rest = left.name[:5], left.name[5:41], left.name[42:]
    container, process, serial, time = rest.split("-")
    assert (prefix, boot.count("-"), int(process) > 0) == (".tmp-", 4, True)
    other_boot = ("1" if boot[0] == "0" else "0") + boot[1:]
    kept = [
        f".tmp-{other_boot}-{rest}",  # another machine, or this machine before a restart
        f".tmp-{boot}-{container}0-{process}-{serial}-{time}",  # another container
        f".tmp-{boot}-{container}-{os.getpid()}-{serial}-{time}",
        f".tmp-{boot}-{container}-{process}x-{serial}-{time}",
        f".tmp-{boot}-{container}-{process}",
        f".tmp-{boot}-{container}-0-{serial}-{time}",
        f".tmp-{boot}-{container}--1-{serial}-{time}",
        f".tmp-{process}-{serial}-{time}",  # machines cannot be distinguished here
        f"{left.name[1:]}",
        ".tmp-",
    ]
    for name in kept:
        (left.parent / name).touch()
    write_something(data)
    assert not left.exists()
    assert {path.name for path in left.parent.iterdir()} >= set(kept)
