"""Work in processes and threads of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterable

from patience import PATIENCE_S


def run_program(code: str, *arguments: object, **settings: str) -> subprocess.CompletedProcess[str]:
    """Runs the code in a new process, with these variables of the environment."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
        env=os.environ | settings,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def printed_by(code: str, *arguments: object, **settings: str) -> str:
    done = run_program(code, *arguments, **settings)
    assert done.returncode == 0, done.stderr
    return done.stdout


def in_threads(works: Iterable[Callable[[], object]]) -> None:
    """Calls the functions at the same time, each in a thread of its own. Raises the first error."""
    given = list(works)
    together = threading.Barrier(len(given))
    errors: list[BaseException] = []

    def begin(work: Callable[[], object]) -> None:
        together.wait()
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=begin, args=[work], daemon=True) for work in given]
    for thread in threads:
        thread.start()
    end = time.monotonic() + PATIENCE_S
    for thread in threads:
        thread.join(max(0, end - time.monotonic()))
    if errors:
        raise errors[0]
    late = sum(thread.is_alive() for thread in threads)
    assert late == 0, f"{late} of {len(threads)} threads did not end within {PATIENCE_S} s."


def is_right_in_child(work: Callable[[], bool]) -> bool:
    """Returns what the function returns in a forked child; False if it raises."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if work() else 1
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
