"""Files that the system lets grow only so far, and so many of them."""

import contextlib
import resource
import signal
from collections.abc import Iterator


@contextlib.contextmanager
def few_bytes_a_file(limit: int) -> Iterator[None]:
    """The system refuses, with a short write first, bytes past a limit.

    Never for longer than the call under test: pytest's own output may go to a longer file.
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
    """The system opens no file whose descriptor would not be below a limit."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
