"""Copies batches to a GPU beside the user's work, on a stream of their own."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

from tfrfast.torch.batch import on_tensors

__all__ = ["begin_copy", "finish_copy"]


def begin_copy(batch: Any, gpu: torch.device) -> tuple[Any, Any]:
    """Begins the copy of a batch. Returns the copy, and an event at its end."""
    stream = _copying_stream(gpu)
    with torch.cuda.stream(stream):
        copy = on_tensors(lambda tensor: tensor.to(gpu, non_blocking=True), batch)
        return copy, stream.record_event()


def finish_copy(copy: Any, copied: Any, gpu: torch.device) -> Any:
    """Returns the copy for use on the user's stream, which waits for the copy."""
    user = torch.cuda.current_stream(gpu)
    user.wait_event(copied)
    # The memory must not be reused before the user's stream has finished with it.
    on_tensors(lambda tensor: _used_on(user, tensor), copy)
    return copy


@cache
def _copying_stream(gpu: torch.device) -> torch.cuda.Stream:
    """One stream for all epochs, because PyTorch keeps the memory of each stream apart."""
    return torch.cuda.Stream(gpu)


def _used_on(stream: torch.cuda.Stream, tensor: torch.Tensor) -> None:
    is_sparse = tensor.layout == torch.sparse_coo  # CUDA sees two dense tensors
    for each in (tensor._indices(), tensor._values()) if is_sparse else (tensor,):
        each.record_stream(stream)
