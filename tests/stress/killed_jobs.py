"""Jobs killed at any moment: the next run of the same job makes the whole result, and leaves no
other files.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

from expectations import check_exact
from whole_children import finish, kill, started

import tfrfast as tfr

MAX_SECONDS = 0.3
FEATURES = {"id": tfr.FixedLen((), "int64")}


def copy(data: Path, out: Path) -> None:
    tfr.copy(data, slice(None), out / "new", num_shards=3, overwrite=True, progress=False)


def shuffle(data: Path, out: Path) -> None:
    tfr.shuffle(data, out / "new", num_shards=3, overwrite=True, max_memory="16MiB", progress=False)


def build_keys(data: Path, out: Path) -> None:
    tfr.build_keys(data, "id", folder=out, max_memory=1 << 12, progress=False)


def build_index(data: Path, out: Path) -> None:
    tfr.build_index(data, force=True, progress=False)


def write_shards(data: Path, out: Path) -> None:
    with tfr.ShardedWriter(out / "new", num_shards=3, overwrite=True, sync=False) as writer:
        for record in tfr.Reader(data):
            writer.write(record)


JOBS: list[Callable[[Path, Path], None]] = [copy, shuffle, build_keys, build_index, write_shards]


def attack(chosen: random.Random, folder: Path) -> str:
    data, out = folder / "data", folder / "out"
    out.mkdir()
    records = [
        tfr.encode_example({"id": number, "text": chosen.randbytes(chosen.randrange(300))})
        for number in range(chosen.choice([3, 500, 10_000]))
    ]
    with tfr.Writer(data, sync=False) as writer:
        writer.write_batch(records)
    job = chosen.choice(JOBS)
    for _ in range(chosen.randrange(1, 5)):
        killed = started(lambda: job(data, out), folder.parent)
        kill(killed, folder.parent, chosen.uniform(0, MAX_SECONDS))
    finish(started(lambda: job(data, out), folder.parent), folder.parent)
    reader = tfr.Reader(data)
    check_exact(reader, records, chosen)
    if job is build_keys:
        keyed = reader.by("id", folder=out)
        for number in chosen.sample(range(len(records)), min(20, len(records))):
            assert keyed[number] == records[number]
    elif job is not build_index:
        made = list(tfr.Reader(out / "new-*"))
        assert made == records if job is copy else sorted(made) == sorted(records)
    places = [out, Path(f"{out}.tfrfast"), Path(f"{folder}.tfrfast")]
    left = [path for place in places for path in place.glob(".*") if is_leftover(path)]
    left += list(places[1].glob("shuffle-*"))
    assert not left, f"{job.__name__} left {left}"
    return f"killed {job.__name__}"


def is_leftover(path: Path) -> bool:
    return not path.name.endswith("lock")
