"""The three data sets that benchmarks run on, made once and kept.

`ctr`: many small records; `mnist`: records of 3 KB; `image`: records of 110 KB. They lie in
$TFRFAST_BENCH_DATA, by default a folder in the user's cache, and are made on first use (2.6 GB).
"""

from __future__ import annotations

import glob
import os
import zlib
from pathlib import Path
from typing import NamedTuple

from tfrfast.bench.shapes import write_shape


class DataSet(NamedTuple):
    num_records: int
    num_shards: int


DATA_SETS = {
    "ctr": DataSet(2_000_000, 32),
    "mnist": DataSet(60_000, 10),
    "image": DataSet(16_000, 16),
}


def folder() -> Path:
    return Path(os.environ.get("TFRFAST_BENCH_DATA") or Path.home() / ".cache/tfrfast/bench-data")


def gzip_shards_of(name: str) -> list[str]:
    """Returns the data set's shards as TensorFlow compresses them: one member, level 6."""
    made = []
    for plain in shards_of(name):
        target = folder() / "gzip" / name / os.path.basename(plain)
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            packer = zlib.compressobj(6, zlib.DEFLATED, 31, 9)
            part = target.with_name(".part")
            part.write_bytes(packer.compress(Path(plain).read_bytes()) + packer.flush())
            part.rename(target)
        made.append(str(target))
    return made


def shards_of(name: str) -> list[str]:
    """Returns the data set's shards, in order. Makes missing shards."""
    num_records, num_shards = DATA_SETS[name]
    pattern = f"/train-*-of-{num_shards:05}"
    found = sorted(glob.glob(glob.escape(str(folder() / name)) + pattern))
    if len(found) == num_shards:
        return found
    return write_shape(name, folder() / name, num_records, num_shards)
