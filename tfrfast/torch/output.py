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
        to_gpu = device is not None and device.type == "cuda"
        pin = torch.cuda.is_available() and (self.pin_memory or to_gpu)
        gpu = (device if to_gpu else torch.cuda.current_device()) if pin else None

        def prepare(item: Placed) -> Placed:
            place, batch = item
            if isinstance(batch, Columns):
                batch = as_tensors(batch)
            if self.transform is not None:
                batch = self.transform(batch)
            if pin:
                with torch.cuda.device(gpu):  # else each thread would begin to use the first GPU
                    batch = pinned(batch)
            return place, batch

        if self.transform is None and not pin:
            ready: Iterator[Placed] = (prepare(item) for item in batches)
        else:
            ready = in_order(prepare, batches, threads)
        if device is None or device.type == "cpu":
            return ready
        if to_gpu:
            return copied_to_gpu(ready, device)
        return ((place, on_tensors(lambda each: each.to(device), batch)) for place, batch in ready)
