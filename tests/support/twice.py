"""An executor that runs each task twice, as after a node was lost."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any


class Twice(Executor):
    """Pickles each task, runs it twice and gives the second result. Calls `before` before each."""

    _max_workers = 3

    def __init__(
        self, before: Callable[[Any], object] = lambda task: None, *, at_once: bool = False
    ) -> None:
        self.before = before
        self.at_once = at_once

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()

        def run(pickled: bytes) -> Any:
            function, arguments = pickle.loads(pickled)
            return function(*arguments, **kwargs)

        try:
            self.before(args[0])
            pickled = [pickle.dumps((fn, args))] * 2
            with ThreadPoolExecutor(2 if self.at_once else 1) as pool:
                future.set_result(list(pool.map(run, pickled))[1])
        except BaseException as error:
            future.set_exception(error)
        return future
