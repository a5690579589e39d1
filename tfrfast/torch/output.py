"""The work on batches between decoding and delivery."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from tfrfast.columns import Batch as Columns
from tfrfast.torch.ahead import copied_to_gpu
from tfrfast.torch.batch import as_tensors, on_tensors, pinned

__all__ = ["Output", "Placed"]

Placed = tuple[tuple[int, int, int], Any]  # the user's place after a batch, and the batch


@dataclass
class Output:
    """Makes tensors, transforms, pins and copies them to a device, ahead of the user."""

    transform: Callable[[Any], Any] | None
    pin_memory: bool
    device: torch.device | None
    _pins_for: torch.device | None = None

    def work(self) -> Callable[[Any], Any] | None:
        """Returns the work of a Loader's threads on each batch; None if not worth a thread."""
        goes_to_gpu = self.device is not None and self.device.type == "cuda"
        return self._prepared if self.transform or self.pin_memory or goes_to_gpu else None

    def _prepared(self, batch: Any) -> Any:
        batch = _tensors_of(batch)
        if self.transform is not None:
            batch = self.transform(batch)
        if self._pins_for is not None:
            with torch.cuda.device(self._pins_for):  # otherwise each thread would use the first GPU
                batch = pinned(batch)
        return batch

    def of(self, batches: Iterator[Placed], *, worked_on: bool) -> Iterator[Placed]:
        """Yields each batch for delivery."""
        device = self.device
        # Determined when an epoch begins, after the user has chosen a GPU and has forked.
        gpu = self._pins_for = self._gpu()
        if not worked_on:
            batches = ((place, _tensors_of(batch)) for place, batch in batches)
        if device is None or device.type == "cpu":
            return batches
        if gpu is not None and device.type == "cuda":
            return copied_to_gpu(batches, gpu)
        return ((at, on_tensors(lambda each: each.to(device), batch)) for at, batch in batches)

    def _gpu(self) -> torch.device | None:
        """Returns the GPU for pinned batches, with its number.

        Without the number, "cuda" would mean the first GPU in a Loader's threads.

        Calls CUDA only where needed, because a process that has called CUDA may not use it in
        forks.
        """
        if self.device is not None and self.device.type == "cuda":
            number = self.device.index
            return torch.device("cuda", torch.cuda.current_device() if number is None else number)
        if self.pin_memory and torch.cuda.is_available():
            return torch.device("cuda", torch.cuda.current_device())
        return None


def _tensors_of(batch: Any) -> Any:
    return as_tensors(batch) if isinstance(batch, Columns) else batch
