"""Work on batches ahead of the consumer. Results keep the order of the batches."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

import torch

from tfrfast.torch.batch import on_tensors

__all__ = ["begun_ahead", "copied_to_gpu", "in_order"]

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


def begun_ahead(
    begin: Callable[[T], U], finish: Callable[[U], Any], items: Iterable[T]
) -> Iterator[Any]:
    """Yields `finish(begin(item))` for each item. Each item is begun before its predecessor is
    delivered.
    """
    source, error = iter(items), None
    begun: deque[U] = deque()
    while True:
        try:
            begun.append(begin(next(source)))
        except StopIteration:
            break
        except Exception as failure:
            error = failure
            break
        if len(begun) > 1:
            yield finish(begun.popleft())
    for each in begun:
        yield finish(each)
    if error is not None:
        raise error


def copied_to_gpu(batches: Iterable[tuple[Any, Any]], device: torch.device) -> Iterator[Any]:
    """Yields (key, batch), the batch on the GPU. Copies one batch ahead, on a separate stream."""
    stream = _copying_stream(device)

    def begin(item: tuple[Any, Any]) -> tuple[Any, Any, Any]:
        key, batch = item
        with torch.cuda.stream(stream):
            copy = on_tensors(lambda tensor: tensor.to(device, non_blocking=True), batch)
            return key, copy, stream.record_event()

    def finish(item: tuple[Any, Any, Any]) -> tuple[Any, Any]:
        key, copy, copied = item
        user = torch.cuda.current_stream(device)
        user.wait_event(copied)
        # The memory must not be reused before the user's stream has finished with it.
        on_tensors(lambda tensor: _used_on(user, tensor), copy)
        return key, copy

    return begun_ahead(begin, finish, batches)


@cache
def _copying_stream(device: torch.device) -> torch.cuda.Stream:
    """One stream for all epochs, because PyTorch keeps the memory of each stream apart."""
    return torch.cuda.Stream(device)


def _used_on(stream: torch.cuda.Stream, tensor: torch.Tensor) -> None:
    is_sparse = tensor.layout == torch.sparse_coo  # CUDA sees two dense tensors
    for each in (tensor._indices(), tensor._values()) if is_sparse else (tensor,):
        each.record_stream(stream)
