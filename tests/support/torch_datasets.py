"""Datasets of PyTorch around a Loader, in a module that spawned workers can import."""

from __future__ import annotations

from collections.abc import Iterator

from torch.utils.data import IterableDataset, get_worker_info

import tfrfast as tfr


def batches(loader: tfr.Loader) -> Iterator[list[bytes]]:
    return (batch.tolist() for batch in loader)


class Wrapped(IterableDataset[list[bytes]]):
    """A Loader that was made before the workers."""

    def __init__(self, loader: tfr.Loader) -> None:
        self.loader = loader

    def __iter__(self) -> Iterator[list[bytes]]:
        return batches(self.loader)


class MadeInWorker(IterableDataset[list[bytes]]):
    """A Loader for each worker, all for the same records."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __iter__(self) -> Iterator[list[bytes]]:
        return batches(tfr.Loader(self.path, 10))


class Shared(MadeInWorker):
    """A share for each worker."""

    def __iter__(self) -> Iterator[list[bytes]]:
        worker = get_worker_info()
        if worker is None:
            return super().__iter__()
        return batches(tfr.Loader(self.path, 10, rank=worker.id, world=worker.num_workers))
