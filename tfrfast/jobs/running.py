"""Runs the tasks of a job on threads of this process, or on an executor.

A job is `plan -> tasks -> commit`. A plan cuts tasks that can be pickled. A task publishes nothing
under a final name unless publishing twice is harmless. So a task may be killed, run again, or run
twice at once. A commit makes the results visible, whole or not at all.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, wait
from functools import partial
from queue import SimpleQueue
from typing import Protocol, TypeVar

from tfrfast import _native
from tfrfast.base.job_threads import JobThreads
from tfrfast.base.warning import core_warnings

__all__ = ["Advance", "Task", "num_workers", "run_tasks"]

Result = TypeVar("Result")
ResultOf = TypeVar("ResultOf", covariant=True)

#: Takes the amount of newly finished work. Raises if the job has ended meanwhile.
Advance = Callable[[int], None]

# Submitted and unfinished tasks for each worker: one waits while one runs.
_SUBMITTED = 2
# Finished tasks for each worker whose results wait for an earlier task's.
_AHEAD = 8


class Task(Protocol[ResultOf]):
    """A part of a job."""

    @property
    def amount(self) -> int:
        """The task's amount of work: the sum of its calls of `advance`."""

    def run(self, advance: Advance) -> ResultOf: ...


def num_workers(executor: Executor | None, threads: int | None = None) -> int:
    """Returns the number of tasks that run at a time, as far as known."""
    if executor is not None:
        threads = getattr(executor, "_max_workers", None)
    return threads or _native.usable_processors()


def run_tasks(
    tasks: Sequence[Task[Result]],
    executor: Executor | None,
    threads: int | None,
    advance: Callable[[int], None],
) -> Iterator[Result]:
    """Yields the results of tasks, in order.

    An error, or Ctrl-C, ends the other tasks and is raised unchanged. When the iteration ends in
    any way, no task runs any longer. `advance` takes the amounts of finished work. Any thread calls
    it, but never two threads at once.
    """
    workers = num_workers(executor, threads)
    if executor is not None:
        yield from _in_order(tasks, executor, workers, _OnExecutor(advance))
    elif workers == 1 or len(tasks) == 1:
        for task in tasks:
            yield task.run(advance)
    else:
        with JobThreads(min(workers, len(tasks) or 1)) as pool:
            yield from _in_order(tasks, pool, workers, _OnThreads(advance, pool.end_waits))


class _OnThreads:
    """Runs tasks on threads of this process."""

    def __init__(self, advance: Callable[[int], None], end_waits: Callable[[], None]) -> None:
        self._advance = advance
        self._end_waits = end_waits
        self._lock = threading.Lock()
        self._is_over = threading.Event()

    def submit(self, pool: Executor, task: Task[Result]) -> Future[Result]:
        return pool.submit(task.run, self._told)

    def done(self, task: Task[Result]) -> None:
        pass

    def stop(self) -> None:
        self._is_over.set()
        self._end_waits()

    def _told(self, newly: int) -> None:
        if self._is_over.is_set():
            raise KeyboardInterrupt
        with self._lock:
            self._advance(newly)


class _OnExecutor:
    """Runs tasks on an executor, which returns only results."""

    def __init__(self, advance: Callable[[int], None]) -> None:
        self._advance = advance

    def submit(self, executor: Executor, task: Task[Result]) -> Future[Result]:
        return executor.submit(_run, task)

    def done(self, task: Task[Result]) -> None:
        self._advance(task.amount)

    def stop(self) -> None:
        pass


def _run(task: Task[Result]) -> Result:
    with core_warnings():
        return task.run(_ignore)


def _ignore(newly: int) -> None:
    pass


def _tell(finished: SimpleQueue[int], number: int, _: object) -> None:
    finished.put(number)


def _in_order(
    tasks: Sequence[Task[Result]], executor: Executor, workers: int, way: _OnThreads | _OnExecutor
) -> Iterator[Result]:
    finished: SimpleQueue[int] = SimpleQueue()
    running: dict[int, Future[Result]] = {}
    results: dict[int, Result] = {}
    begun = 0
    try:
        for number in range(len(tasks)):
            while number not in results:
                while begun < min(len(tasks), number + _AHEAD * workers) and (
                    len(running) < _SUBMITTED * workers
                ):
                    future = way.submit(executor, tasks[begun])
                    running[begun] = future
                    future.add_done_callback(partial(_tell, finished, begun))
                    begun += 1
                ended = finished.get()
                results[ended] = running.pop(ended).result()
                way.done(tasks[ended])
            yield results.pop(number)
    finally:
        way.stop()
        # Not all executors report the end of a future that was cancelled before it began.
        left = [future for future in running.values() if not future.cancel()]
        try:
            wait(left)
        except BaseException:  # a second Ctrl-C: an executor that can kill its tasks kills them now
            for future in left:
                future.cancel()
            raise
