"""A stage: work on batches ahead of the consumer, in order. The place follows the consumer.

Stages stack: a stage has the methods of a native Loader, and takes its batches from a native Loader
or from another stage.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import Any, NoReturn

from tfrfast import _native
from tfrfast.base.job_threads import submit_to

__all__ = ["Core", "Stage"]

Place = tuple[int, int, int]  # epoch, step, position: the consumer's place


class Stage:
    """Delivers `finish(work(batch))` for each batch of `core`.

    `work` is called for up to `ahead` batches beyond the requested one: by `threads` threads, or
    with 0 by the consumer's thread. The consumer's thread calls `finish` at delivery. The place
    counts delivered batches. An error is raised at its batch's place, and the next request calls
    `work` again. The result of `finish` is never None.
    """

    def __init__(
        self,
        core: Core,
        work: Callable[[Any], Any],
        *,
        threads: int = 0,
        ahead: int = 0,
        finish: Callable[[Any], Any] | None = None,
    ) -> None:
        self._core = core
        self._given = self._work = work
        self._threads = threads
        self._ahead = ahead
        self._finish = finish
        self.stats: Callable[[], dict[str, Any]] = core.stats
        self._start_here()
        self._place: Place = core.place()
        # The running pass. A pass refers to its stage, so a strong reference would make a cycle.
        self._running: weakref.ref[StagePass] | None = None
        self._waiting: deque[_Pending] = deque()  # of the running pass

    def note_work(self, noting: Callable[[Callable[[Any], Any]], Callable[[Any], Any]]) -> None:
        """Replaces the work by what `noting` makes of the work that the stage was given."""
        self._work = noting(self._given)

    def begin(self) -> StagePass:
        """Begins a pass, like the native Loader, after the batches that were delivered."""
        self._settle_in_this_process()
        self._refuse_own_threads()
        begun = StagePass(self, self._core.begin())
        with self._moving:
            self._leave()
            self._running, self._waiting = weakref.ref(begun), begun._waiting
            self._place = self._core.place()
        return begun

    def seek(self, epoch: int, position: int) -> None:
        self._settle_in_this_process()
        self._core.seek(epoch, position)
        with self._moving:
            self._leave()
            self._place = self._core.place()

    def place(self) -> Place:
        return self._place

    def close(self) -> None:
        self._core.close()
        if self._home.is_this_one():
            with self._moving:
                self._leave()
            self._pool = self._new_pool()  # the threads of the old pool end

    def _start_here(self) -> None:
        self._home = _native.HomeProcess()
        self._moving = threading.Lock()  # guards _running and _place
        self._of_thread = threading.local()
        self._pool = self._new_pool()

    def _new_pool(self) -> ThreadPoolExecutor | None:
        """Makes the threads of all epochs: CUDA and other libraries prepare each new thread."""
        if self._threads == 0:
            return None
        mark = self._of_thread, "works", True
        return ThreadPoolExecutor(self._threads, "tfrfast", initializer=setattr, initargs=mark)

    def _begin_work(self, batch: Any) -> Future[Any] | _Done:
        if self._pool is None:
            return _Done(self._work, batch)
        return submit_to(self._pool, "transform", self._work, batch)

    def _refuse_own_threads(self) -> None:
        """A result that waits for a later result would wait for ever."""
        if isinstance(self._core, Stage):
            self._core._refuse_own_threads()
        if self._pool is not None and hasattr(self._of_thread, "works"):
            raise RuntimeError(
                "transform asked its own Loader for a batch, which waits for transform. Let "
                "transform use the batch that it is given, or another Loader."
            )

    def _is_running(self, one: StagePass) -> bool:
        return self._running is not None and self._running() is one

    def _leave(self) -> None:
        """Ends the running pass. Call under the lock."""
        waiting, self._running, self._waiting = self._waiting, None, deque()
        results = [each.result for each in list(waiting) if each.result is not None]
        for result in results:
            result.cancel()
        if any(result.running() for result in results):
            self._pool = self._new_pool()  # the next pass does not wait for the work of this one

    def _settle_in_this_process(self) -> None:
        """Moves a forked child, which has no threads, from the parent's read-ahead back to the
        place of the parent's consumer.
        """
        if not self._home.is_this_one():
            _left_behind.append((self._pool, self._waiting))
            self._waiting = deque()
            self._start_here()
            self._core.seek(self._place[0], self._place[2])


Core = _native.Loader | Stage


class _Done:
    """The result of work on the consumer's thread, with the methods of a Future."""

    __slots__ = ("_error", "_result")

    def __init__(self, work: Callable[[Any], Any], batch: Any) -> None:
        self._result, self._error = None, None
        try:
            self._result = work(batch)
        except Exception as error:
            self._error = error

    def result(self) -> Any:
        if self._error is not None:
            raise self._error
        return self._result

    def done(self) -> bool:
        return True

    def running(self) -> bool:
        return False

    def cancel(self) -> bool:
        return False


class _Pending:
    """A batch, the consumer's place after the batch, and the result of the work."""

    __slots__ = ("batch", "place", "result")

    def __init__(self, batch: Any, place: Place) -> None:
        self.batch = batch
        self.place = place
        self.result: Future[Any] | _Done | None = None


class StagePass:
    """The state of one `for` loop. Threads may share a pass: each batch goes to one thread."""

    def __init__(self, owner: Stage, batches: _native.LoaderPass | StagePass) -> None:
        self._owner = owner
        self._is_over = False
        self._start(batches, 0)

    def _start(self, batches: _native.LoaderPass | StagePass, steps_before: int) -> None:
        self._batches = batches
        self._steps_before = steps_before  # steps of this epoch in passes that forks ended
        self._home = _native.HomeProcess()
        self._lock = threading.Lock()
        self._waiting: deque[_Pending] = deque()
        self._together = min(2, self._owner._ahead + 1)  # batches to work on at the next request
        self._failure: Exception | None = None  # a read error that follows the waiting batches
        self._end: Place | None = None

    def next(self) -> Any:
        """Returns the next result, or None at the end."""
        if not self._home.is_this_one():
            self._settle_in_this_process()
        self._owner._refuse_own_threads()
        with self._lock:
            if self._is_over:
                return None
            if not self._owner._is_running(self):
                self._raise_ended()
            self._read_ahead()
            if self._waiting:
                return self._finished(self._waiting[0])
            if self._failure is not None:
                failure, self._failure = self._failure, None
                raise failure
            assert self._end is not None
            self._deliver(self._end)
            self._is_over = True
            return None

    def _raise_ended(self) -> NoReturn:
        self._batches.next()  # raises the error that has ended this iteration
        raise RuntimeError("This iteration has ended: the loader was moved.")

    def _read_ahead(self) -> None:
        """Begins the work on the next batches: in the end on all that may be ahead.

        The number grows from request to request, so that the first batch does not wait for all.
        """
        while len(self._waiting) < self._together and not self._end and not self._failure:
            try:
                batch = self._batches.next()
            except Exception as failure:
                self._failure = failure
                return
            epoch, step, position = self._owner._core.place()
            if batch is None:
                self._end = epoch, step, position
                return
            pending = _Pending(batch, (epoch, self._steps_before + step, position))
            self._waiting.append(pending)
            pending.result = self._owner._begin_work(batch)
        self._together = min(2 * self._together, self._owner._ahead + 1)

    def _finished(self, pending: _Pending) -> Any:
        owner = self._owner
        if pending.result is None:
            pending.result = owner._begin_work(pending.batch)
        work = pending.result
        try:
            result = work.result()
            if owner._finish is not None:
                result = owner._finish(result)
        except BaseException as error:
            if isinstance(error, CancelledError) and not owner._is_running(self):
                self._raise_ended()
            if work.done():
                pending.result = None  # the next request tries again
            if isinstance(error, StopIteration):  # which would end the `for`
                raise RuntimeError("transform raised StopIteration.") from error
            raise
        self._deliver(pending.place)
        self._waiting.popleft()
        return result

    def _deliver(self, place: Place) -> None:
        """Moves the consumer, unless the loader was moved meanwhile."""
        with self._owner._moving:
            if self._owner._is_running(self):
                self._owner._place = place
                return
        self._raise_ended()

    def _settle_in_this_process(self) -> None:
        """Continues from the parent's place in a forked child."""
        owner, step = self._owner, self._owner._place[1]
        _left_behind.append(self._waiting)
        is_running = owner._is_running(self) and not self._is_over
        if is_running:
            owner._settle_in_this_process()
            self._batches = owner._core.begin()
            step -= owner._core.place()[1]  # not 0 if the core was where the consumer was
        self._start(self._batches, step)
        if is_running:
            owner._waiting = self._waiting


# Destroying these objects in a forked child would wait for threads of the parent.
_left_behind: list[object] = []
