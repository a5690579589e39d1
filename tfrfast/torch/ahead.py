"""Work on batches ahead of the consumer. Results keep the order of the batches."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

__all__ = ["in_order"]

T = TypeVar("T")
U = TypeVar("U")


def in_order(function: Callable[[T], U], items: Iterable[T], threads: int) -> Iterator[U]:
    """Yields `function(item)` for each item. Threads compute up to `threads` + 1 items ahead.

    An error of an item or of `function` comes after the results of all earlier items.
    """
    waiting: deque[Future[U]] = deque()
    pool = ThreadPoolExecutor(threads, thread_name_prefix="tfrfast")
    try:
        source, error, more = iter(items), None, True
        while True:
            while more and len(waiting) <= threads:
                try:
                    waiting.append(pool.submit(function, next(source)))
                except StopIteration:
                    more = False
                except Exception as failure:
                    error, more = failure, False
            if not waiting:
                break
            yield waiting.popleft().result()
        if error is not None:
            raise error
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
