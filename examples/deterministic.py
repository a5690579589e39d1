"""The same batches in every run, on any number of threads, and after a restart at any step.

python examples/deterministic.py
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import tfrfast as tfr

BATCH_SIZE = 50
SEED = 11


def write_data(folder: Path, count: int = 5000) -> list[str]:
    with tfr.ShardedWriter(folder / "train", num_shards=7, sync=False) as writer:
        writer.write_batch(
            tfr.encode_examples(
                {"number": np.arange(count), "values": np.random.default_rng(0).random((count, 20))}
            )
        )
    return sorted(str(path) for path in folder.glob("train-*"))


def make_loader(shards: list[str], threads: int) -> tfr.Loader:
    features = {"number": tfr.FixedLen((), "int64"), "values": tfr.FixedLen((20,), "float32")}
    return tfr.Loader(shards, BATCH_SIZE, features=features, seed=SEED, threads=threads)


def epoch_digests(loader: tfr.Loader, steps: int | None = None) -> list[str]:
    """Returns a hash of each batch, to the end of this epoch or for `steps` batches."""
    digests = []
    for batch in loader:
        digest = hashlib.sha256()
        for column in ("number", "values"):
            digest.update(batch[column].tobytes())
        digests.append(digest.hexdigest())
        if len(digests) == steps:
            break
    return digests


def in_another_process(shards: list[str], threads: int, state: str = "") -> list[str]:
    """Returns the hashes from another process, which shares only the files and the state."""
    done = subprocess.run(
        [sys.executable, __file__, "--digests", str(threads), state, *shards],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    digests: list[str] = json.loads(done.stdout)
    return digests


def restarted(shards: list[str], at: int, threads: int) -> list[str]:
    """Stops after some steps. Another process, with another number of threads, does the rest."""
    loader = make_loader(shards, threads)
    before = epoch_digests(loader, at)
    return before + in_another_process(shards, threads + 1, json.dumps(loader.state_dict()))


def main() -> None:
    if sys.argv[1:2] == ["--digests"]:
        loader = make_loader(sys.argv[4:], int(sys.argv[2]))
        if sys.argv[3]:
            loader.load_state_dict(json.loads(sys.argv[3]))
        print(json.dumps(epoch_digests(loader)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        shards = write_data(Path(temporary) / "data")
        expected = epoch_digests(make_loader(shards, threads=1))
        print(f"{len(expected)} batches")
        for threads in (1, 2, 5, 16):
            print(
                f"{threads:2} threads: same {epoch_digests(make_loader(shards, threads)) == expected}"
            )
        print(f"another process: same {in_another_process(shards, 3) == expected}")
        for at in (1, 37, len(expected) - 1):
            print(f"restarted after {at:2}: same {restarted(shards, at, 2) == expected}")


if __name__ == "__main__":
    main()
