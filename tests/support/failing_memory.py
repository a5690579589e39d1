"""Makes native objects while one `new` of C++ fails. Run with failing_new preloaded."""

from __future__ import annotations

import ctypes
import functools
import gc
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import tfrfast as tfr

FEATURES = {"a": tfr.FixedLen((), "int64"), "b": tfr.VarLen("float32")}


@functools.cache
def compiled(source: Path, compiler: str) -> str:
    """Returns the library of that source, compiled once a run."""
    built = Path(tempfile.gettempdir()) / f"tfrfast-{source.stem}-{os.getuid()}.so"
    if not built.exists() or built.stat().st_mtime < source.stat().st_mtime:
        partial = f"{built}.{os.getpid()}"
        subprocess.run(
            [compiler, "-shared", "-fPIC", "-O1", "-o", partial, source, "-ldl"], check=True
        )
        os.replace(partial, built)
    return str(built)


def library() -> str:
    """Returns the library of failing_new.cpp."""
    return compiled(Path(__file__).with_name("failing_new.cpp"), os.environ.get("CXX", "c++"))


def jobs(folder: str) -> Iterator[tuple[str, Callable[[], object]]]:
    """Every constructor and iterator of the native module."""
    path = os.path.join(folder, "shard")
    with tfr.Writer(path, overwrite=True) as writer:
        for number in range(300):
            writer.write(tfr.encode_example({"a": number, "b": [1.0] * (number % 7)}))
    reader = tfr.Reader(path, threads=1)
    records = [reader[number] for number in range(20)]
    mixture = {"one": (reader, 1.0), "two": (reader, 2.0)}
    yield "Plan", lambda: tfr.Plan(tfr.Shuffle(), 10, num_records=1000)
    yield "iterator", lambda: next(iter(reader))
    yield "batch", lambda: reader.read(range(200))
    yield "Loader", lambda: next(iter(tfr.Loader(reader, 100, threads=1)))
    yield "columns", lambda: next(iter(tfr.Loader(reader, 9, threads=1, features=FEATURES)))
    yield "parse", lambda: tfr.parse_example(records, FEATURES)
    yield (
        "Writer",
        lambda: tfr.Writer(os.path.join(folder, f"new-{os.getpid()}"), overwrite=True).close(),
    )
    yield "Reader", lambda: tfr.Reader(path, threads=1)
    yield "scan", lambda: next(iter(tfr.scan(reader, features=FEATURES, threads=1)))
    yield "Mixture", lambda: next(iter(tfr.Loader(tfr.Mixture(mixture), 10, threads=1)))


def outcome(job: Callable[[], object], calls: int, fail_after: Callable[[int], None]) -> int:
    """Runs `job` in a child where `new` fails after `calls` calls. Returns 0 if the job ended well,
    1 for MemoryError.
    """
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        status = 2
        try:
            fail_after(calls)
            job()
            status = 0
        except MemoryError:
            status = 1
        finally:
            fail_after(-1)
            gc.collect()
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(most: int, step: int, *wanted: str) -> None:
    fail_after = ctypes.CDLL(library()).fail_after
    with tempfile.TemporaryDirectory() as folder:
        for name, job in jobs(folder):
            if wanted and name not in wanted:
                continue
            job()  # imports modules, and makes objects that are made only once
            fine = 0
            for calls in range(0, most, step):
                status = outcome(job, calls, fail_after)
                assert status in (0, 1), f"{name}, new {calls}: {status}"
                fine = fine + 1 if status == 0 else 0
                if fine == 3:
                    break
            print(name, flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
