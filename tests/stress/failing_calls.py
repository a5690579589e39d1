"""System calls that fail now and then, like the calls to a full or a dying disk."""

from __future__ import annotations

import errno
import functools
import os
import pickle
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from expectations import check_exact, check_reader, outcome, some_records, write

import tfrfast as tfr

CALLS = [
    "open", "preadv", "pread", "mmap", "fstat", "stat", "pwritev", "pwrite", "fsync", "linkat", "rename",
    "ftruncate", "mkdir", "close",
]  # fmt: skip
ERRORS = [errno.EIO, errno.ENOSPC, errno.EMFILE, errno.EACCES, errno.ESTALE, errno.ENOMEM]
PATIENCE_S = 240


@functools.cache
def library() -> str:
    """Returns the library of failing_calls.c, compiled once a run."""
    source = Path(__file__).with_name("failing_calls.c")
    built = Path(tempfile.gettempdir()) / f"tfrfast-failing-calls-{os.getuid()}.so"
    if not built.exists() or built.stat().st_mtime < source.stat().st_mtime:
        partial = f"{built}.{os.getpid()}"
        compiler = os.environ.get("CC", "cc")
        subprocess.run(
            [compiler, "-shared", "-fPIC", "-O1", "-o", partial, source, "-ldl"], check=True
        )
        os.replace(partial, built)
    return str(built)


def attack(chosen: random.Random, folder: Path) -> str:
    call = chosen.choice(CALLS)
    environment = os.environ | {
        "LD_PRELOAD": library(),
        "FAILING_UNDER": str(folder.parent),
        "FAILING_CALL": call,
        "FAILING_ERROR": str(chosen.choice(ERRORS)),
        "FAILING_AFTER": str(chosen.choice([0, 1, 2, 5, 20, 100])),
        "FAILING_COUNT": str(chosen.choice([1, 3, 1_000_000])),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    shards = [some_records(chosen, f"shard {i}") for i in range(chosen.randrange(1, 4))]
    for number, records in enumerate(shards):
        write(folder / f"shard-{number}", records, chosen.choice([None, None, "GZIP"]))
    done = subprocess.run(
        [sys.executable, "-P", __file__],
        input=pickle.dumps((folder, chosen.random(), shards)),
        env=environment,
        timeout=PATIENCE_S,
        capture_output=True,
    )
    said = (done.stdout + done.stderr).decode(errors="replace")
    assert done.returncode == 0, f"{call}: status {done.returncode}\n{said}"
    everything = [record for records in shards for record in records]
    paths = [folder / f"shard-{number}" for number in range(len(shards))]
    check_exact(tfr.Reader(paths), everything, chosen)
    if (folder / "copy").exists():
        check_exact(tfr.Reader(folder / "copy"), everything, chosen)
    return f"failing {call}"


def work(folder: Path, chosen: random.Random, shards: list[list[bytes]]) -> None:
    """Works while calls fail."""
    paths = [folder / f"shard-{number}" for number in range(len(shards))]
    allowed = [{record} for records in shards for record in records]
    for _ in range(3):
        options = {
            "io": chosen.choice(["mmap", "pread"]),
            "threads": chosen.choice([1, 2]),
            "index": chosen.choice(["auto", "memory", str(folder.parent / "indexes")]),
        }
        reader = outcome(functools.partial(tfr.Reader, paths, **options))
        if isinstance(reader, tfr.Reader):
            check_reader(reader, allowed, chosen)
            outcome(functools.partial(copy, reader, folder / "copy"))
        outcome(functools.partial(tfr.build_index, paths, progress=False))


def copy(reader: tfr.Reader, path: Path) -> None:
    with tfr.Writer(path, overwrite=True) as writer:
        writer.write_batch(reader.read(range(len(reader))))


if __name__ == "__main__":
    given_folder, seed, given_shards = pickle.load(sys.stdin.buffer)
    work(given_folder, random.Random(seed), given_shards)
