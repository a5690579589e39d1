"""What processes that share a cache do. Run with a task's name and arguments."""

from __future__ import annotations

import sys

import numpy as np

import tfrfast as tfr


def reads(folder: str, limit: str, seed: str, *urls: str) -> None:
    """Reads everything once, shuffled, and says which records it got."""
    reader = tfr.Reader(urls, cache=tfr.DiskCache(folder, int(limit)))
    print("open", flush=True)
    sys.stdin.readline()
    got = [batch.indices for batch in tfr.Loader(reader, 25, seed=int(seed))]
    assert sorted(np.concatenate(got)) == list(range(len(reader)))
    reader.close()


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
