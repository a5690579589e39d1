"""What a task of Ray's is told about itself."""

from __future__ import annotations

import math

import ray

__all__ = ["processors_of_task"]


def processors_of_task() -> int:
    """How many processors this task was given: how many threads it should start."""
    try:
        given = ray.get_runtime_context().get_assigned_resources().get("CPU", 1)
    except AssertionError:  # this is no task
        return 1
    return max(1, math.floor(given))
