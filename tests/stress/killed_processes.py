"""Processes killed at any moment: they leave whole files or none, and nothing that disturbs a later
process.
"""

from __future__ import annotations

import os
import random
import signal
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from expectations import check_exact

import tfrfast as tfr

MAX_SECONDS = 0.15


def content_of(generation: int, count: int) -> list[bytes]:
    """Returns records. The first record determines the contents of all records."""
    return [b"%d %d" % (generation, count)] + [
        b"%d %d " % (generation, i) * (i % 40) for i in range(1, count)
    ]


def expected_of(first: bytes) -> list[bytes]:
    generation, count = map(int, first.split())
    return content_of(generation, count)


def write_one(folder: Path, generation: int, chosen: random.Random) -> None:
    options = {"sync": chosen.random() < 0.5, "compression": chosen.choice([None, "GZIP"])}
    with tfr.Writer(folder / "one", overwrite=True, **options) as writer:  # type: ignore[arg-type]
        writer.write_batch(content_of(generation, chosen.randrange(1, 500)))


def write_many(folder: Path, generation: int, chosen: random.Random) -> None:
    with tfr.ShardedWriter(folder / "many", num_shards=3, overwrite=True, sync=False) as writer:
        writer.write_batch(content_of(generation, chosen.randrange(1, 500)))


def index(folder: Path, generation: int, chosen: random.Random) -> None:
    if (folder / "one").exists():
        tfr.build_index(folder / "one", progress=False, force=chosen.random() < 0.5)


def read(folder: Path, generation: int, chosen: random.Random) -> None:
    if (folder / "one").exists():
        list(tfr.Loader(tfr.Reader(folder / "one"), 16, threads=2))


WORK: list[Callable[[Path, int, random.Random], None]] = [write_one, write_many, index, read]


def work_until_killed(folder: Path, generation: int, chosen: random.Random) -> None:
    child = os.fork()
    if child == 0:
        try:
            while True:
                chosen.choice(WORK)(folder, generation, chosen)
        except BaseException:
            (folder.parent / "failure").write_text(traceback.format_exc())
        finally:
            os._exit(1)
    time.sleep(chosen.uniform(0, MAX_SECONDS))
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), (folder.parent / "failure").read_text()


def attack(chosen: random.Random, folder: Path) -> str:
    for generation in range(chosen.randrange(1, 8)):
        work_until_killed(folder, generation, random.Random(chosen.random()))
        if (folder / "one").exists():
            reader = tfr.Reader(folder / "one")
            check_exact(reader, expected_of(reader[0]), chosen)
    write_one(folder, 99, chosen)
    left = [name for name in os.listdir(folder) if name.startswith(".tmp-")]
    assert not left, f"left behind: {left}"
    return "kills"
