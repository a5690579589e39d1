"""Tasks of processes that share a cache. Run with a task's name and arguments."""

from __future__ import annotations

import sys

import tfrfast as tfr
from orders import shuffled


def steps(folder: str, limit: str, seed: str, *urls: str) -> None:
    """Reads everything once, shuffled, ten records at a time. Requests nothing ahead."""
    reader = tfr.Reader(urls, cache=tfr.DiskCache(folder, int(limit)))
    print("open", flush=True)
    sys.stdin.readline()
    order = shuffled(len(reader), int(seed)).tolist()
    for begin in range(0, len(order), 10):
        assert len(reader.read(order[begin : begin + 10])) == 10
    reader.close()


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
