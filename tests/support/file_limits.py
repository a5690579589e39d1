"""Limits the size of files, and the number of open files."""

import contextlib
import resource
import signal
from collections.abc import Iterator


@contextlib.contextmanager
def few_bytes_a_file(limit: int) -> Iterator[None]:
    """Makes the system refuse bytes past a limit, after a short write.

    Use it only around the call under test: pytest's own output may go to a longer file.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


@contextlib.contextmanager
def few_open_files(limit: int) -> Iterator[None]:
    """Makes the system open no file whose descriptor would reach the limit."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
