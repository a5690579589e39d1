"""The Loader for PyTorch: its batches are tensors, transformed and copied to the device ahead."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, SupportsIndex

import torch

from tfrfast.base.arguments import Remainder, epoch_number
from tfrfast.features import AnyFeatures, Features
from tfrfast.loading.loader import Loader as ColumnLoader
from tfrfast.loading.records import open_reader
from tfrfast.loading.wrapped import WrappedLoader
from tfrfast.order import Batching, Mixture, Order, Weight
from tfrfast.reader import Reader
from tfrfast.storage.paths import Paths
from tfrfast.torch.output import Output
from tfrfast.torch.share import Share, remainder_for, share_of_processors

__all__ = ["Loader"]


class Loader(WrappedLoader):
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
        share = Share(rank, world)
        options = {
            "batch_size": batch_size,
            "order": order,
            "shuffle": shuffle,
            "seed": seed,
            "remainder": remainder,
            "threads": threads,
            "prefetch": prefetch,
        }
        output = Output(transform, pin_memory, None if device is None else torch.device(device))
        if not isinstance(source, Mixture) or reader_options:
            source = open_reader(source, reader_options)
        self._set_up(source, features, share, options, output)

    def _set_up(
        self,
        source: Reader | Mixture,
        features: AnyFeatures | None,
        share: Share,
        options: dict[str, Any],
        output: Output,
    ) -> None:
        self._source = source
        self.reader = open_reader(source, {})
        self._share = share
        self._options = options
        self._output = output
        self._loader = self._make(*share.so_far(), features)
        self.features: Features | None = self._loader.features
        self._is_placed = True  # a state was loaded, and no `for` has begun since

    def _make(self, rank: int, world: int, features: AnyFeatures | None) -> ColumnLoader:
        options = dict(self._options)
        options["remainder"] = options["remainder"] or remainder_for(world)
        options["threads"] = self._threads()
        # In workers of a DataLoader, a Loader without rank and world must notice their absence.
        options["world"] = world if self._share.given or world > 1 else None
        options["transform"] = self._output.prepare()
        loader = ColumnLoader(self._source, features=features, rank=rank, **options)
        loader._deliver_through(self._output.begin, self._output.ahead, self._output.finish)
        return loader

    def _threads(self) -> int:
        threads: int | None = self._options["threads"]
        return share_of_processors() if threads is None else threads

    def _settled(self) -> ColumnLoader:
        """Returns the loader of this rank. Makes it again if the ranks have changed."""
        share = self._share.now()
        plan = self._loader.plan
        if share != (plan.rank, plan.world):
            state = self.state_dict()
            self._loader.close()
            self._loader = self._make(*share, self.features)
            self.load_state_dict(state)
        return self._loader

    def _begin(self) -> Iterator[Any]:
        loader = self._settled()
        self._output.choose_gpu()
        self._is_placed = False
        return iter(loader)

    def set_epoch(self, epoch: SupportsIndex) -> None:
        """Makes the next `for` deliver this epoch, from its beginning.

        If a state of this epoch has just been loaded, the next `for` finishes the epoch, as it
        would without this call.
        """
        number = epoch_number(epoch)
        if not self._is_placed or self.epoch != number:
            self._loader.set_epoch(number)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._loader.load_state_dict(state)
        self._is_placed = True

    def change_weights(self, weights: Mapping[str, Weight]) -> None:
        self._loader.change_weights(weights)
        self._is_placed = True

    def __reduce__(self) -> tuple[Any, ...]:
        arguments = self._source, self.features, self._share, self._options, self._output
        return _restored, (arguments, self.state_dict())

    def __repr__(self) -> str:
        if not hasattr(self, "_loader"):
            return "Loader(not made)"
        plan = self._loader.plan
        return f"Loader({self.reader!r}, {plan!r}, epoch={self.epoch}, step={self.step})"


def _restored(arguments: tuple[Any, ...], state: dict[str, Any]) -> Loader:
    loader = Loader.__new__(Loader)
    loader._set_up(*arguments)
    loader.load_state_dict(state)
    return loader
