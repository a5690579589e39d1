"""The number of files that TensorFlow's runtime interleaves, by the processors that it may use."""

from __future__ import annotations

import os

# The runtime's number of threads for each file, if it chooses the number of interleaved files.
_THREADS_OF_A_FILE = 3


def usable() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def turns_of_the_runtime() -> int:
    """Returns the number of interleaved files for AUTOTUNE."""
    return -(-usable() // _THREADS_OF_A_FILE)
