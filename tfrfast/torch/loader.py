"""The Loader for PyTorch: its batches are tensors, transformed and copied to the device ahead."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, SupportsIndex

import torch

from tfrfast.base.arguments import Remainder, check_transform, epoch_number
from tfrfast.base.refused_arguments import explains_arguments
from tfrfast.features import AnyFeatures
from tfrfast.loading.loader import BatchLoader
from tfrfast.loading.records import order_of
from tfrfast.loading.states import Appended
from tfrfast.loading.worker_share import WorkerShare
from tfrfast.order import Batching, Mixture, Order, Weight
from tfrfast.reader import Reader
from tfrfast.storage.paths import Paths
from tfrfast.torch.batch_work import BatchWork
from tfrfast.torch.share import Share, share_of_processors

__all__ = ["Loader"]


class Loader(BatchLoader):
    """Iterates over batches of tensors, one epoch a `for` loop.

        loader = tfrfast.torch.Loader("data/train-*", 256, features=["image", "label"], seed=1)
        for batch in loader:
            train_step(batch["image"], batch["label"])

    Replaces Dataset, DistributedSampler and DataLoader, and needs no worker processes. Batches,
    order, states and errors equal those of `tfrfast.Loader`.

    Args:
      source: a Reader, anything that Reader takes, or a Mixture.
      batch_size: rows of a batch of this rank, or a ByTokens, or a Packed.
      features: as in `tfrfast.Loader`. With None, batches are RecordBatches, for `transform` to
        decode.
      transform: a function of a Batch, called in threads. Results are delivered in order, and an
        error is raised at its batch's place.
      order, shuffle, seed: as in `tfrfast.Loader`.
      rank, world: by default torch.distributed's when an epoch begins; 0 and 1 without it.
      remainder: as in Plan; by default "keep" with one rank, and "pad" with several.
      threads: the number of threads that read, and of threads that transform; by default the
        processors that this process may use, divided by LOCAL_WORLD_SIZE.
      prefetch: batches that are read ahead; by default two more than threads.
      pin_memory: puts batches in page-locked memory. Does nothing without CUDA.
      device: the device for all tensors of a batch, also inside dicts, lists and tuples of a
        transform. The next batch is copied to a GPU during the use of the current batch, from
        page-locked memory and on a stream of its own.
      reader_options: options of Reader.

    Each `for` is the next epoch. `state_dict` counts delivered batches, not batches that were read,
    transformed or copied ahead.
    """

    @explains_arguments
    def __init__(
        self,
        source: Reader | Mixture | Paths,
        batch_size: Batching,
        *,
        features: AnyFeatures | None,
        transform: Callable[[Any], Any] | None = None,
        order: Order | None = None,
        shuffle: bool | None = None,
        seed: SupportsIndex | None = None,
        rank: int | None = None,
        world: int | None = None,
        remainder: Remainder | None = None,
        threads: int | None = None,
        prefetch: int | None = None,
        pin_memory: bool = False,
        device: torch.device | str | int | None = None,
        **reader_options: Any,
    ) -> None:
        check_transform(transform, "a batch")
        self._ranks = Share(rank, world, remainder)
        self._work = BatchWork(
            transform, pin_memory, None if device is None else torch.device(device)
        )
        share = self._ranks.so_far()
        self._open(
            source,
            reader_options,
            order_of(source, order, shuffle, seed),
            batch_size,
            features,
            share,
            self._work.prepare(),
            threads,
            prefetch,
        )
        # In workers of a DataLoader, a Loader without rank and world must notice their absence.
        is_known = self._ranks.given or share["world"] > 1
        self._share = WorkerShare(share["world"] if is_known else None)
        self._deliver_through(self._work.begin, ahead=self._work.ahead, finish=self._work.finish)
        self._is_placed = True  # a state was loaded, and no `for` has begun since

    _begins_late = True
    _kept = ("_ranks", "_work", "_delivery")

    def _usual_threads(self) -> int:
        return share_of_processors()

    def _settle(self) -> None:
        self._take_share(self._ranks.of)

    def _begin(self) -> Iterator[Any]:
        self._work.choose_gpu()
        self._is_placed = False
        return super()._begin()

    def set_epoch(self, epoch: SupportsIndex) -> None:
        """Makes the next `for` deliver this epoch, from its beginning.

        If a state of this epoch has just been loaded, the next `for` finishes the epoch, as it
        would without this call.
        """
        number = epoch_number(epoch)
        if not self._is_placed or self.epoch != number:
            super().set_epoch(number)

    def load_state_dict(self, state: dict[str, Any], *, appended: Appended = "refuse") -> None:
        super().load_state_dict(state, appended=appended)
        self._is_placed = True

    def change_weights(self, weights: Mapping[str, Weight]) -> None:
        super().change_weights(weights)
        self._is_placed = True
