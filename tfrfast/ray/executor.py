"""Ray's tasks as a `concurrent.futures.Executor`, for jobs with an `executor` argument."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent import futures
from concurrent.futures import Executor, Future
from typing import Any, TypeVar

import ray
from ray import cloudpickle

__all__ = ["RayExecutor"]

Result = TypeVar("Result")


class RayExecutor(Executor):
    """Runs each function as a task of the cluster that this process is connected to.

        tfr.verify("data/train-*", executor=tfrfast.ray.RayExecutor())

    A task runs in this process's folder, if its node has that folder, so relative names lead to the
    same files. If a node dies, Ray runs its tasks again on another node. Connects like `ray.init()`
    if needed.

    Args:
      options: options of `ray.remote` for the tasks. By default a task takes one processor.
    """

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        if not ray.is_initialized():
            ray.init()
        given = {"num_cpus": 1, "max_retries": 3, **(options or {})}
        self._run = ray.remote(_call).options(**given)
        processors = ray.cluster_resources().get("CPU", 1)
        #: The number of tasks that run at a time, under the standard library's name.
        self._max_workers = max(1, int(processors // max(given["num_cpus"], 0.01)))
        self._unfinished: set[Future[Any]] = set()

    def submit(self, fn: Callable[..., Result], /, *args: Any, **kwargs: Any) -> Future[Result]:
        """Returns a future for `fn(*args, **kwargs)`. The future raises the task's own error."""
        task = self._run.remote(_current_folder(), cloudpickle.dumps((fn, args, kwargs)))
        future: Future[Result] = _TaskFuture(task)
        self._unfinished.add(future)
        future.add_done_callback(self._unfinished.discard)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Waits for all tasks, as the end of `with` does. The executor can be used again."""
        unfinished = self._unfinished.copy()
        for future in unfinished if cancel_futures else ():
            future.cancel()
        if wait:
            futures.wait(unfinished)


def _current_folder() -> str:
    """Returns "" if the current folder has been removed, which absolute names do not need."""
    with contextlib.suppress(FileNotFoundError):
        return os.getcwd()
    return ""


def _call(folder: str, pickled: bytes) -> Any:
    before = _current_folder()
    with contextlib.suppress(OSError):
        os.chdir(folder)
    try:
        fn, args, kwargs = cloudpickle.loads(pickled)  # may open files by relative names
        with _interruptible():
            return fn(*args, **kwargs)
    finally:
        with contextlib.suppress(OSError):
            os.chdir(before)


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Lets Ray interrupt a task in a worker that ignores SIGINT, because Ray calls SIGINT's
    handler.

    Background programs of a script ignore SIGINT, and workers inherit this.
    """
    ignores = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    if not ignores or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


class _TaskFuture(Future[Any]):
    """The result of a task. After cancel() it is done when the task has really ended."""

    def __init__(self, task: Any) -> None:
        super().__init__()
        self._task = task
        self._was_interrupted = False
        task.future().add_done_callback(self._finish)

    def cancel(self) -> bool:
        """Interrupts the task, too, like Ctrl-C. The second call kills the task's process."""
        if not self.done():
            ray.cancel(self._task, force=self._was_interrupted)
            self._was_interrupted = True
        return False

    def _finish(self, inner: Future[Any]) -> None:
        error = inner.exception()
        if error is None:
            self.set_result(inner.result())
        else:
            cause = getattr(error, "cause", None)
            self.set_exception(cause if isinstance(cause, BaseException) else error)
