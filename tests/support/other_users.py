"""Runs work as another user of this machine, in children that take the other user's number."""

from __future__ import annotations

import os
import pickle
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

STRANGER = 54321
OTHER = 54322

needs_root = pytest.mark.skipif(
    not hasattr(os, "setresuid") or os.geteuid() != 0, reason="only root can become other users"
)


@contextmanager
def open_folder() -> Iterator[Path]:
    """Yields a folder that every user may enter, unlike pytest's folders. Any user may make files
    there.
    """
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    folder.chmod(0o1777)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def as_user(user: int, work: Callable[[], Any]) -> Any:
    """Calls `work` as that user, and returns its result. An exception of `work` becomes an
    AssertionError.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.environ["TFRFAST_CACHE_DIR"] = f"/tmp/nowhere-{user}"
        try:
            os.setgroups([])
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
            result = True, work()
        except BaseException as error:
            result = False, f"{type(error).__name__}: {error}"
        with open(writing, "wb") as pipe:
            pickle.dump(result, pipe)
        os._exit(0)
    os.close(writing)
    with open(reading, "rb") as pipe:
        content = pipe.read()
    os.waitpid(child, 0)
    done, value = pickle.loads(content)
    assert done, value
    return value
