"""Merges a million files of one record each into shards, and shows that the mixing is exact.

python examples/single_record_files.py [--files 1000000] [--shards 64]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

import tfrfast as tfr

_PER_FOLDER = 1000
_PARTS = 16


class Mixing(NamedTuple):
    """The mixing of the merged shards, and of an epoch of a Loader over these shards."""

    once_in_shards: int
    once_in_epoch: int
    z_of_shards: float
    """A z-score: counts the records that went from each part of the files to each part of the
    shards, and gives the distance from a fair order in standard deviations. A fair order is hardly
    ever beyond 4.
    """
    z_of_epoch: float


def write_files(folder: Path, count: int) -> str:
    """Writes file i with one example that holds the number i. Returns a pattern for all files."""
    for number in range(count):
        inside = folder / f"{number // _PER_FOLDER:04d}"
        if number % _PER_FOLDER == 0:
            inside.mkdir(parents=True)
        example = tfr.encode_example({"number": number, "payload": b"x" * 100})
        with tfr.Writer(inside / f"{number:07d}.tfrecord", index=False, sync=False) as writer:
            writer.write(example)
    return str(folder / "*" / "*.tfrecord")


def merge(pattern: str, prefix: Path, num_shards: int) -> list[str]:
    """Writes all records in a uniformly random order. Their content and count are checked before
    the shards are published.
    """
    return list(tfr.shuffle(pattern, prefix, num_shards=num_shards, seed=1, sync=False).paths)


def judge(shards: list[str], count: int) -> Mixing:
    features = {"number": tfr.FixedLen((), "int64")}
    with tfr.Reader(shards) as reader:
        stored = _numbers(tfr.Loader(reader, 1024, features=features, shuffle=False))
        epoch = _numbers(tfr.Loader(reader, 1024, features=features, seed=2))
    return Mixing(
        once_in_shards=int((np.bincount(stored, minlength=count) == 1).sum()),
        once_in_epoch=int((np.bincount(epoch, minlength=count) == 1).sum()),
        z_of_shards=_unfairness(stored),
        z_of_epoch=_unfairness(epoch),
    )


def _numbers(loader: tfr.Loader) -> np.ndarray:
    return np.concatenate([batch["number"] for batch in loader])


def _unfairness(order: np.ndarray) -> float:
    """Chi-square over (part of the files, part of the epoch), as a z-score."""
    n = len(order)
    cells = order * _PARTS // n * _PARTS + np.arange(n) * _PARTS // n
    counts = np.bincount(cells, minlength=_PARTS**2)
    freedom = (_PARTS - 1) ** 2  # rows and columns are full in any order
    expected = n / _PARTS**2
    return float((((counts - expected) ** 2).sum() / expected - freedom) / np.sqrt(2 * freedom))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--shards", type=int, default=8)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        began = time.perf_counter()
        pattern = write_files(Path(temporary) / "files", options.files)
        print(f"{options.files:,} files written in {time.perf_counter() - began:.1f} s")
        began = time.perf_counter()
        shards = merge(pattern, Path(temporary) / "merged" / "train", options.shards)
        print(f"merged into {len(shards)} shards in {time.perf_counter() - began:.1f} s")
        mixing = judge(shards, options.files)
        print(
            f"in the shards {mixing.once_in_shards:,} once, in an epoch {mixing.once_in_epoch:,}; "
            f"z {mixing.z_of_shards:+.1f} and {mixing.z_of_epoch:+.1f}"
        )


if __name__ == "__main__":
    main()
