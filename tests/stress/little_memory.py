"""Memory that runs out in every constructor and iterator: a MemoryError, or the requested
result.
"""

from __future__ import annotations

import functools
import os
import random
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from whole_children import finish, started

import failing_memory


def attack(chosen: random.Random, folder: Path) -> str:
    jobs = dict(failing_memory.jobs(str(folder)))
    name = chosen.choice(list(jobs))
    if chosen.random() < 0.2:
        fail_each_new(name, chosen)
        return f"new fails, {name}"
    for _ in range(chosen.randrange(1, 10)):
        use = functools.partial(use_up, jobs[name], chosen.randrange(40 << 20), chosen)
        child = started(use, folder.parent)
        finish(child, folder.parent)
    return f"little memory, {name}"


def fail_each_new(name: str, chosen: random.Random) -> None:
    done = subprocess.run(
        [sys.executable, "-P", failing_memory.__file__, "400", str(chosen.randrange(1, 9)), name],
        env={
            **os.environ,
            "LD_PRELOAD": failing_memory.library(),
            "PYTHONPATH": os.pathsep.join(sys.path),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def use_up(job: Callable[[], object], space: int, chosen: random.Random) -> None:
    """Runs the job again and again, until memory runs out."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + space
    before = resource.getrlimit(resource.RLIMIT_AS)
    kept: list[object] = []
    resource.setrlimit(resource.RLIMIT_AS, (limit, before[1]))
    try:
        for _ in range(2000):
            kept.append(job())
            kept.append(bytearray(chosen.randrange(1, 1 << chosen.choice([6, 12, 16, 20]))))
    except (MemoryError, OSError):
        pass
    finally:
        kept.clear()
        resource.setrlimit(resource.RLIMIT_AS, before)
