"""Threads that wait for a network no longer than their job lasts."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any, TypeVar

from tfrfast import _native

Result = TypeVar("Result")


def submit_to(
    pool: Executor, what: str, work: Callable[..., Result], *arguments: Any
) -> Future[Result]:
    """Submits work to threads. Raises OSError if a thread for `what` cannot be started."""
    try:
        return pool.submit(work, *arguments)
    except RuntimeError as error:
        if "start new thread" not in str(error):
            raise
        raise OSError(
            f"Starting a thread for {what} failed. Ask for fewer threads, or raise the limits on "
            "processes and memory (`ulimit -u`, `ulimit -v`)."
        ) from error


class JobThreads(ThreadPoolExecutor):
    """A pool whose threads end, with KeyboardInterrupt, if an error or Ctrl-C ends the `with`.

    Ctrl-C itself reaches the main thread only.
    """

    def __init__(self, threads: int) -> None:
        self._end = _native.JobEnd()
        super().__init__(threads, initializer=self._end.obey)

    def end_waits(self) -> None:
        """Ends all running work at its next wait."""
        self._end.come()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is not None:
            self.end_waits()
        self.shutdown(wait=True, cancel_futures=kind is not None)
