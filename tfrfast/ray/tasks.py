"""Facts that a Ray task knows about itself."""

from __future__ import annotations

import math

import ray

__all__ = ["processors_of_task"]


def processors_of_task() -> int:
    """Returns the number of this task's processors, which is the number of threads to start."""
    try:
        given = ray.get_runtime_context().get_assigned_resources().get("CPU", 1)
    except AssertionError:  # not in a task
        return 1
    return max(1, math.floor(given))
