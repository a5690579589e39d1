"""Links of 0.5 to 6 MB/s that lose answers: the right bytes, in about the necessary time."""

from __future__ import annotations

import random
import time
from pathlib import Path

from expectations import check_exact
from own_server import served

import tfrfast as tfr
from tfrecord_model import shard_of

_PATIENCE_S = 60


def attack(chosen: random.Random, folder: Path) -> str:
    rate = chosen.choice([0.5e6, 1e6, 2e6, 4e6, 6e6])
    losses = chosen.choice([0, 0.02, 0.1])
    shards = {}
    for number in range(chosen.randrange(1, 5)):
        length = chosen.choice([100, 3000, 100_000])
        count = min(500, max(1, int(rate * chosen.uniform(0, 0.5)) // length))
        shards[f"shard-{number}"] = [
            b"%d %d " % (number, record) + chosen.randbytes(length) for record in range(count)
        ]
    everything = [record for records in shards.values() for record in records]
    objects = {name: shard_of(records) for name, records in shards.items()}
    begun = time.monotonic()
    with served(objects, rate, losses, chosen.random()) as urls:
        reader = tfr.Reader(
            list(urls.values()),
            storage={"timeout": 2},
            threads=chosen.choice([1, 4]),
            cache=chosen.choice([None, tfr.DiskCache(folder / "kept", "100M")]),
        )
        check_exact(reader, everything, chosen)
        loader = tfr.Loader(reader, 16, order=tfr.BlockShuffle(64, 4), threads=2)
        assert sorted(record for batch in loader for record in batch.tolist()) == sorted(everything)
        loader.close()
        reader.close()
    # All bytes are read a few times.
    fair = 6 * sum(map(len, objects.values())) / rate + 3 * losses * 100
    took = time.monotonic() - begun
    assert took < fair + _PATIENCE_S, f"{took:.0f} s at {rate / 1e6} MB/s and {losses:.0%} losses"
    return f"slow links, {rate / 1e6} MB/s, {losses:.0%} lost"
