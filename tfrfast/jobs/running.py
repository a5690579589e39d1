"""Runs the tasks of a job on threads of this process, or on an executor.

A job is `plan -> tasks -> commit`. A plan cuts tasks that can be pickled. A task publishes nothing
under a final name unless publishing twice is harmless. So a task may be killed, run again, or run
twice at once. A commit makes the results visible, whole or not at all.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Executor, Future, wait
from functools import partial
from queue import SimpleQueue
from typing import Protocol, TypeVar

from tfrfast import _native
from tfrfast.base.arguments import checked_threads
from tfrfast.base.job_threads import JobThreads, submit_to
from tfrfast.base.progress import ProgressBar
from tfrfast.base.warning import core_warnings
from tfrfast.reader import Reader

__all__ = ["Advance", "Task", "Workers", "run_tasks"]

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


class Workers:
    """What runs the tasks of a job, threads of this process or an executor, and who is told."""

    def __init__(
        self,
        executor: Executor | None = None,
        threads: int | None = None,
        progress: bool | None = None,
    ) -> None:
        self.executor = executor
        self.threads = checked_threads(threads)
        self.progress = progress

    @classmethod
    def of(cls, reader: Reader, executor: Executor | None = None) -> Workers:
        """Returns the executor, or as many threads as the reader has."""
        return cls(executor, reader._options["threads"], reader._options["progress"])

    @property
    def count(self) -> int:
        """The number of tasks that run at a time, as far as known."""
        return _count(self.executor, self.threads)

    def run(
        self, doing: str, tasks: Sequence[Task[Result]], unit: str | None = None
    ) -> Generator[Result, None, None]:
        """Yields the results of tasks, in order, like `run_tasks`. Shows the amount of finished
        work, in bytes or in another unit.
        """
        with ProgressBar(doing, self.progress, unit) as bar:
            total = sum(task.amount for task in tasks)
            yield from run_tasks(tasks, self.executor, self.threads, bar.adding(total))


def _count(executor: Executor | None, threads: int | None) -> int:
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
    workers = _count(executor, threads)
    if executor is not None:

        def submit_to_executor(task: Task[Result]) -> Future[Result]:
            return executor.submit(_run, task)

        def tell_all(task: Task[Result]) -> None:  # an executor returns only results
            advance(task.amount)

        yield from _in_order(tasks, workers, submit_to_executor, tell_all)
        return
    if workers == 1 or len(tasks) == 1:
        for task in tasks:
            yield task.run(advance)
        return
    lock, is_over = threading.Lock(), threading.Event()

    def tell(newly: int) -> None:
        if is_over.is_set():
            raise KeyboardInterrupt
        with lock:
            advance(newly)

    with JobThreads(min(workers, len(tasks) or 1)) as pool:

        def submit(task: Task[Result]) -> Future[Result]:
            return submit_to(pool, "a job", task.run, tell)

        def stop() -> None:
            is_over.set()
            pool.end_waits()

        yield from _in_order(tasks, workers, submit, _ignore, stop)


def _run(task: Task[Result]) -> Result:
    with core_warnings():
        return task.run(_ignore)


def _ignore(*_: object) -> None:
    pass


def _note(finished: SimpleQueue[int], number: int, _: object) -> None:
    finished.put(number)


def _in_order(
    tasks: Sequence[Task[Result]],
    workers: int,
    submit: Callable[[Task[Result]], Future[Result]],
    tell: Callable[[Task[Result]], None],
    stop: Callable[[], None] = _ignore,
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
                    future = submit(tasks[begun])
                    running[begun] = future
                    future.add_done_callback(partial(_note, finished, begun))
                    begun += 1
                ended = finished.get()
                results[ended] = running.pop(ended).result()
                tell(tasks[ended])
            yield results.pop(number)
    finally:
        stop()
        # Not all executors report the end of a future that was cancelled before it began.
        left = [future for future in running.values() if not future.cancel()]
        try:
            wait(left)
        except BaseException:  # a second Ctrl-C: an executor that can kill its tasks kills them now
            for future in left:
                future.cancel()
            raise
