"""What is done to batches between their decoding and the user."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from tfrfast.columns import Batch as Columns
from tfrfast.torch.ahead import copied_to_gpu, in_order
from tfrfast.torch.batch import as_tensors, on_tensors, pinned

__all__ = ["Output", "Placed"]

Placed = tuple[tuple[int, int, int], Any]  # where the user stands after a batch, and the batch


@dataclass(frozen=True)
class Output:
    """Tensors, transformed, pinned, on a device. What would keep the user waiting is done ahead."""

    transform: Callable[[Any], Any] | None
    pin_memory: bool
    device: torch.device | None

    def of(self, batches: Iterator[Placed], threads: int) -> Iterator[Placed]:
        """Each batch as it is delivered."""
        device = self.device
        gpu = self._gpu()

        def prepare(item: Placed) -> Placed:
            place, batch = item
            if isinstance(batch, Columns):
                batch = as_tensors(batch)
            if self.transform is not None:
                batch = self.transform(batch)
            if gpu is not None:
                with torch.cuda.device(gpu):  # else each thread would begin to use the first GPU
                    batch = pinned(batch)
            return place, batch

        if self.transform is None and gpu is None:
            ready: Iterator[Placed] = (prepare(item) for item in batches)
        else:
            ready = in_order(prepare, batches, threads)
        if device is None or device.type == "cpu":
            return ready
        if gpu is not None and device.type == "cuda":
            return copied_to_gpu(ready, gpu)
        return ((place, on_tensors(lambda each: each.to(device), batch)) for place, batch in ready)

    def _gpu(self) -> torch.device | None:
        """The GPU for which batches are pinned, with its number: to a thread, "cuda" is the first.

        CUDA is not asked where it is not needed, as a process that asks may not use it in forks.
        """
        if self.device is not None and self.device.type == "cuda":
            number = self.device.index
            return torch.device("cuda", torch.cuda.current_device() if number is None else number)
        if self.pin_memory and torch.cuda.is_available():
            return torch.device("cuda", torch.cuda.current_device())
        return None
