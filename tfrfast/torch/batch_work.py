"""The work on batches between decoding and delivery."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from tfrfast.torch.batch import on_tensors, pinned, tensors_of
from tfrfast.torch.copying import begin_copy, finish_copy

__all__ = ["BatchWork"]


@dataclass
class BatchWork:
    """Makes tensors, transforms, pins and copies them to a device, ahead of the user."""

    transform: Callable[[Any], Any] | None
    pin_memory: bool
    device: torch.device | None
    #: The GPU of the running epoch, with its number: without it, "cuda" would mean the first GPU in
    #: a Loader's threads.
    _gpu: torch.device | None = None

    @property
    def ahead(self) -> int:
        """The number of batches that are copied ahead of the user."""
        return int(self._goes_to_gpu)

    @property
    def _goes_to_gpu(self) -> bool:
        return self.device is not None and self.device.type == "cuda"

    def choose_gpu(self) -> None:
        """Determines the GPU when an epoch begins, after the user has chosen one and has forked.

        Calls CUDA only where needed, because a process that has called CUDA may not use it in
        forks.
        """
        self._gpu = None
        if self._goes_to_gpu and self.device is not None and self.device.index is not None:
            self._gpu = self.device
        elif self._goes_to_gpu or (self.pin_memory and torch.cuda.is_available()):
            self._gpu = torch.device("cuda", torch.cuda.current_device())

    def prepare(self) -> Callable[[Any], Any] | None:
        """Returns the work of a Loader's threads on each batch; None if not worth a thread."""
        is_work = self.transform is not None or self.pin_memory or self._goes_to_gpu
        return self._prepared if is_work else None

    def _prepared(self, batch: Any) -> Any:
        batch = tensors_of(batch)
        if self.transform is not None:
            batch = self.transform(batch)
        if self._gpu is not None:
            with torch.cuda.device(self._gpu):  # otherwise each thread would use the first GPU
                batch = pinned(batch)
        return batch

    def begin(self, batch: Any) -> Any:
        """Begins the last work on a batch, on the user's thread."""
        batch = tensors_of(batch)
        if self._goes_to_gpu and self._gpu is not None:
            return begin_copy(batch, self._gpu)
        device = self.device
        if device is None or device.type == "cpu":
            return batch
        return on_tensors(lambda tensor: tensor.to(device), batch)

    def finish(self, begun: Any) -> Any:
        """Returns the batch for delivery."""
        if self._goes_to_gpu and self._gpu is not None:
            copy, copied = begun
            return finish_copy(copy, copied, self._gpu)
        return begun
