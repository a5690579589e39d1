"""Few descriptors, short files, little memory: a clear error or the right bytes."""

from __future__ import annotations

import random
import resource
import signal
from pathlib import Path

from expectations import check_exact, check_reader, outcome, some_records, write

import tfrfast as tfr


def attack(chosen: random.Random, folder: Path) -> str:
    shards = [some_records(chosen, f"shard {number}") for number in range(chosen.randrange(1, 200))]
    paths = []
    for number, records in enumerate(shards):
        paths.append(folder / f"shard-{number:03}")
        write(paths[-1], records)
    everything = [record for records in shards for record in records]
    allowed = [{record} for record in everything]
    limit = chosen.choice(["descriptors", "file size", "memory"])
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    before = {}
    what, value = {
        "descriptors": (resource.RLIMIT_NOFILE, chosen.randrange(6, 80)),
        "file size": (resource.RLIMIT_FSIZE, chosen.choice([0, 10, 4096, 100_000])),
        "memory": (resource.RLIMIT_AS, memory_in_use() + (chosen.randrange(1, 200) << 20)),
    }[limit]
    before = resource.getrlimit(what)
    resource.setrlimit(what, (value, before[1]))
    options = {"io": chosen.choice(["mmap", "pread"]), "threads": chosen.choice([1, 2])}
    reader = outcome(lambda: tfr.Reader(paths, **options))
    if isinstance(reader, tfr.Reader):
        try:
            check_reader(reader, allowed, chosen)
        except MemoryError:
            assert limit == "memory"  # the test itself ran out of memory
        reader.close()
    written = outcome(lambda: write_again(folder / "again", everything))
    resource.setrlimit(what, before)
    if written is None:
        check_exact(tfr.Reader(folder / "again"), everything, chosen)
    else:
        assert not (folder / "again").exists(), "part of a shard was published"
    check_exact(tfr.Reader(paths), everything, chosen)
    return f"limits, {limit}"


def write_again(path: Path, records: list[bytes]) -> None:
    with tfr.Writer(path, sync=False) as writer:
        writer.write_batch(records)


def memory_in_use() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()
