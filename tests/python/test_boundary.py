"""The boundary between Python and native code: threads, exits, garbage, forks and signals.

The scenarios of tests/support/boundary.py run in processes whose allocators find use after free,
and writes out of bounds. `make stress-threads` runs them for longer, under the thread sanitizer.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from patience import PATIENCE_S

SCENARIO = Path(__file__).parents[1] / "support/boundary.py"

#: Python's debug allocator checks the owner of all bytes, and that the GIL is held. The C library
#: overwrites freed memory.
DEBUG_ALLOCATORS = {"PYTHONMALLOC": "debug", "MALLOC_PERTURB_": "165"}
#: This allocator checks each piece, too. But a forked child may inherit the allocator's lock in
#: locked state.
CHECKING_ALLOCATOR = {
    "LD_PRELOAD": "libc_malloc_debug.so.0",
    "GLIBC_TUNABLES": "glibc.malloc.check=3",
}


@cache
def has_checking_allocator() -> bool:
    """If the dynamic linker does not find the library, it writes a message and goes on without the
    library.
    """
    started = subprocess.run(
        [sys.executable, "-c", ""],
        env={**os.environ, **CHECKING_ALLOCATOR},
        capture_output=True,
        check=False,
    )
    return (started.returncode, started.stderr) == (0, b"")


@pytest.mark.parametrize("scenario", ["exits", "threads", "garbage", "forks", "signals"])
def test_the_boundary_holds(tmp_path: Path, scenario: str) -> None:
    environment = {**os.environ, **DEBUG_ALLOCATORS}
    if scenario != "forks" and has_checking_allocator():
        environment |= CHECKING_ALLOCATOR
    done = subprocess.run(
        [sys.executable, str(SCENARIO), scenario, str(tmp_path)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    said = done.stdout + done.stderr
    assert (done.returncode, said) == (0, ""), said
