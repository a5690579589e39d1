"""Batches of a Loader, transformed by threads ahead of the consumer."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from tfrfast import _native

__all__ = ["TransformingLoader"]

Place = tuple[int, int, int]  # epoch, step, position: the consumer's place


class TransformingLoader:
    """Has the methods of a native Loader, and delivers `work(batch)` for each batch.

    Threads call `work` on later batches, and results come in order. The place counts delivered
    batches. An error of `work` is raised at its batch's place, and the next request calls `work`
    again. `work` never returns None.
    """

    def __init__(self, core: _native.Loader, work: Callable[[Any], Any], threads: int) -> None:
        self._core = core
        self._work = work
        self._threads = threads
        self._place: Place = core.place()
        self._running: TransformingPass | None = None
        self._home = _native.HomeProcess()
        self.stats = core.stats

    def begin(self) -> TransformingPass:
        """Begins a pass, like the native Loader, after the batches that were delivered."""
        if not self._home.is_this_one():  # the core's place is after the parent's read-ahead
            self._home = _native.HomeProcess()
            self._core.seek(self._place[0], self._place[2])
        begun = TransformingPass(self, self._core.begin())
        self._running, self._place = begun, self._core.place()
        return begun

    def seek(self, epoch: int, position: int) -> None:
        self._core.seek(epoch, position)
        self._running, self._place = None, self._core.place()

    def place(self) -> Place:
        return self._place

    def close(self) -> None:
        self._running = None
        self._core.close()


class _Work:
    """A batch, the consumer's place after the batch, and the result of the work."""

    def __init__(self, batch: Any, place: Place) -> None:
        self.batch = batch
        self.place = place
        self.result: Future[Any] | None = None


class TransformingPass:
    """The state of one `for` loop. Threads may share a pass: each batch goes to one thread."""

    def __init__(self, owner: TransformingLoader, batches: _native.LoaderPass) -> None:
        self._owner = owner
        self._start(batches, 0)

    def _start(self, batches: _native.LoaderPass, steps_before: int) -> None:
        self._batches = batches
        self._steps_before = steps_before  # steps of this epoch in passes that forks ended
        self._home = _native.HomeProcess()
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(self._owner._threads, thread_name_prefix="tfrfast")
        self._waiting: deque[_Work] = deque()
        self._failure: Exception | None = None  # a read error that follows the waiting batches
        self._end: Place | None = None

    def next(self) -> Any:
        """Returns the next result, or None at the end."""
        if not self._home.is_this_one():
            self._settle_in_this_process()
        with self._lock:
            if self._owner._running is not self:
                self._batches.next()  # raises the error that has ended this iteration
                raise RuntimeError("This iteration has ended: the loader was moved.")
            self._read_ahead()
            if self._waiting:
                return self._finished(self._waiting[0])
            if self._failure is not None:
                failure, self._failure = self._failure, None
                raise failure
            assert self._end is not None
            self._owner._place = self._end
            self._pool.shutdown(wait=False)
            return None

    def _read_ahead(self) -> None:
        """Begins the work on the next batches: a batch for each thread, and one more."""
        while len(self._waiting) <= self._owner._threads and not self._end and not self._failure:
            try:
                batch = self._batches.next()
            except Exception as failure:
                self._failure = failure
                return
            epoch, step, position = self._owner._core.place()
            if batch is None:
                self._end = epoch, step, position
                return
            work = _Work(batch, (epoch, self._steps_before + step, position))
            work.result = self._pool.submit(self._owner._work, batch)
            self._waiting.append(work)

    def _finished(self, work: _Work) -> Any:
        if work.result is None:
            work.result = self._pool.submit(self._owner._work, work.batch)
        try:
            result = work.result.result()
        except BaseException as error:
            if work.result.done():
                work.result = None  # the next request tries again
            if isinstance(error, StopIteration):  # which would end the `for`
                raise RuntimeError("transform raised StopIteration.") from error
            raise
        self._waiting.popleft()
        self._owner._place = work.place
        return result

    def _settle_in_this_process(self) -> None:
        """Continues from the parent's place in a forked child, which has none of the parent's
        threads.
        """
        # Destroying these objects would wait for threads.
        _left_behind.append((self._pool, self._waiting))
        owner, (epoch, step, position) = self._owner, self._owner._place
        is_running = owner._running is self
        if is_running:
            owner._home = _native.HomeProcess()
            owner._core.seek(epoch, position)
            self._batches = owner._core.begin()
        self._start(self._batches, step)


_left_behind: list[object] = []
