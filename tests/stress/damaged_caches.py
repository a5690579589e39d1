"""A DiskCache whose files are damaged: reads return the right bytes, and do not hang."""

from __future__ import annotations

import contextlib
import os
import random
import time
import warnings
from pathlib import Path

from expectations import check_exact, some_records
from own_server import served
from whole_children import finish, started

import tfrfast as tfr
from tfrecord_model import shard_of


def damage(path: Path, others: list[Path], chosen: random.Random) -> None:
    size = path.stat().st_size
    at = chosen.randrange(size + 1)
    kind = chosen.choice(["flip", "zero", "overwrite", "cut", "empty", "remove", "swap", "repeat"])
    if kind == "remove":
        path.unlink()
    elif kind == "swap":
        other, between = chosen.choice(others), path.with_name("between")
        if other != path:
            path.rename(between)
            other.rename(path)
            between.rename(other)
    elif kind in ("cut", "empty"):
        os.truncate(path, at if kind == "cut" else 0)
    else:
        with open(path, "r+b") as file:
            file.seek(at)
            old = file.read(chosen.choice([1, 8, 16, 4096]))
            file.seek(at)
            if kind == "flip" and old:
                file.write(bytes([old[0] ^ 1 << chosen.randrange(8)]))
            elif kind == "zero":
                file.write(bytes(len(old)))
            elif kind == "overwrite":
                file.write(chosen.randbytes(len(old)))
            elif kind == "repeat":
                file.write(old + old)


def read(urls: list[str], everything: list[bytes], cache: tfr.DiskCache, seed: float) -> None:
    chosen = random.Random(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reader = tfr.Reader(urls, cache=cache, index=chosen.choice(["auto", "memory"]))
        check_exact(reader, everything, chosen)
        reader.close()


def attack(chosen: random.Random, folder: Path) -> str:
    shards = {f"shard-{i}": some_records(chosen, f"shard {i}") for i in range(3)}
    everything = [record for records in shards.values() for record in records]
    kept = folder / "kept"
    cache = tfr.DiskCache(kept, chosen.choice(["1M", "100M"]))
    with served({name: shard_of(records) for name, records in shards.items()}) as urls:
        links = list(urls.values())
        for _ in range(chosen.randrange(2, 6)):
            readers = [
                started(lambda: read(links, everything, cache, chosen.random()), folder.parent)
                for _ in range(chosen.randrange(1, 3))
            ]
            if chosen.random() < 0.5:  # during the reads
                time.sleep(chosen.uniform(0, 0.2))
                damage_some(kept, chosen)
            for reader in readers:
                finish(reader, folder.parent)
            damage_some(kept, chosen)
    return "damaged caches"


def damage_some(kept: Path, chosen: random.Random) -> None:
    for _ in range(chosen.randrange(1, 6)):
        files = [path for path in sorted(kept.rglob("*")) if path.is_file()]
        if files:
            with contextlib.suppress(FileNotFoundError):  # a reader has removed the file
                damage(chosen.choice(files), files, chosen)
