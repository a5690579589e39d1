"""How many files TensorFlow's runtime reads in turns, by the processors that it may use."""

from __future__ import annotations

import os

# The runtime allows so many threads for each file where it chooses how many files take turns.
_THREADS_OF_A_FILE = 3


def usable() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def turns_of_the_runtime() -> int:
    """How many files take turns where calls in parallel are AUTOTUNE."""
    return -(-usable() // _THREADS_OF_A_FILE)
