"""The Loader for PyTorch: its batches are tensors, transformed and copied to the device ahead."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, SupportsIndex

import torch

from tfrfast._native import HomeProcess
from tfrfast.base.arguments import Remainder, epoch_number
from tfrfast.features import AnyFeatures, Features
from tfrfast.loading.loader import Loader as ColumnLoader
from tfrfast.loading.loader import LoaderStats
from tfrfast.loading.records import open_reader
from tfrfast.order import Batching, Mixture, Order, Plan, Weight
from tfrfast.reader import Reader
from tfrfast.storage.paths import Paths
from tfrfast.torch.output import Output, Placed
from tfrfast.torch.share import Share, remainder_for, share_of_processors

__all__ = ["Loader"]


class Loader:
    """Iterates over batches of tensors, one epoch a `for` loop.

        loader = tfrfast.torch.Loader("data/train-*", 256, features=["image", "label"], seed=1)
        for batch in loader:
            train_step(batch["image"], batch["label"])

    Replaces Dataset, DistributedSampler and DataLoader, and needs no worker processes. Batches,
    order, states and errors equal those of `tfrfast.Loader`.

    Args:
      source: a Reader, anything that Reader takes, or a Mixture.
      batch_size: rows of a batch of this rank, or a ByTokens.
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
        self._place = (0, 0, 0)  # epoch, batches delivered, position
        self._at_beginning = True  # of a `for` that will deliver this epoch
        self._running: Iterator[Any] | None = None  # the columns of the last `for`
        self._home = HomeProcess()

    def _make(self, rank: int, world: int, features: AnyFeatures | None) -> ColumnLoader:
        options = dict(self._options)
        options["remainder"] = options["remainder"] or remainder_for(world)
        options["threads"] = self._threads()
        # In workers of a DataLoader, a Loader without rank and world must notice their absence.
        options["world"] = world if self._share.given or world > 1 else None
        options["transform"] = self._output.work()
        return ColumnLoader(self._source, features=features, rank=rank, **options)

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

    def __len__(self) -> int:
        """Steps of a whole epoch."""
        return len(self._settled())

    def __iter__(self) -> Iterator[Any]:
        self._settled()
        return _Epoch(self)

    def _begin(self) -> Iterator[Any]:
        """Begins an epoch for an iterator that is asked for its first batch.

        The epoch counts only then, because DataLoader and Lightning make iterators that they never
        use.
        """
        loader = self._settled()
        self._settle_in_this_process()
        self._running = columns = iter(loader)
        self._at_beginning = False
        self._place = loader._core.place()
        return columns

    @property
    def plan(self) -> Plan:
        """The record numbers of each batch of this rank."""
        return self._settled().plan

    @property
    def epoch(self) -> int:
        """The current epoch: in delivery, or delivered by the next `for`."""
        return self._place[0]

    @property
    def step(self) -> int:
        """Batches of this epoch delivered, since its beginning or since a state was loaded."""
        return self._place[1]

    def set_epoch(self, epoch: SupportsIndex) -> None:
        """Makes the next `for` deliver this epoch, from its beginning.

        If a state of this epoch has just been loaded, the next `for` finishes the epoch, as it
        would without this call.
        """
        number = epoch_number(epoch)
        if self._at_beginning and self._place[0] == number:
            return
        self._loader.set_epoch(number)
        self._at_beginning = True
        self._running = None
        self._place = self._loader._core.place()

    def state_dict(self) -> dict[str, Any]:
        """Returns the user's place: a few hundred bytes, JSON-able, the same for every rank.

        Counts delivered batches. `tfrfast.Loader` has the same states.
        """
        epoch, _, position = self._place
        return self._loader.state_dict() | {"epoch": epoch, "position": position}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Moves to the place of `state_dict`. The next `for` finishes that epoch first.

        World, rank, batch size, remainder, transform, device and threads may differ. Raises
        ValueError for other data, another seed or another shuffle, which cannot continue the same
        epoch.
        """
        self._loader.load_state_dict(state)
        self._at_beginning = True
        self._running = None
        self._place = self._loader._core.place()

    def change_weights(self, weights: Mapping[str, Weight]) -> None:
        """Changes the weights of a Mixture from the user's place on, on every rank alike.

        A running `for` ends with RuntimeError at its next batch.
        """
        self._rewind()
        self._loader.change_weights(weights)
        self._at_beginning = True
        self._running = None
        self._place = self._loader._core.place()

    def stats(self) -> LoaderStats:
        """Counters of reading that tell whether the input is the bottleneck."""
        return self._loader.stats()

    def close(self) -> None:
        """Stops the threads and drops the batches that were read ahead. The reader stays open."""
        self._running = None
        self._loader.close()

    def _settle_in_this_process(self) -> None:
        """Moves a forked child from the parent's read-ahead back to the parent's last delivered
        batch.
        """
        if not self._home.is_this_one():
            self._home = HomeProcess()
            self._rewind()

    def _rewind(self) -> None:
        epoch, _, position = self._place
        self._loader._core.seek(epoch, position)

    def _taken(self, columns: Iterator[Any], before: int) -> Iterator[Placed]:
        """Yields each batch, and the user's place after its delivery."""
        for batch in columns:
            epoch, step, position = self._loader._core.place()
            yield (epoch, before + step, position), batch

    def _delivered(self, columns: Iterator[Any], before: int) -> Iterator[Placed]:
        """Yields the rest of an epoch for delivery."""
        worked_on = self._loader.transform is not None
        return self._output.of(self._taken(columns, before), worked_on=worked_on)

    def __reduce__(self) -> tuple[Any, ...]:
        arguments = self._source, self.features, self._share, self._options, self._output
        return _restored, (arguments, self.state_dict())

    def __repr__(self) -> str:
        if not hasattr(self, "_loader"):
            return "Loader(not made)"
        plan = self._loader.plan
        return f"Loader({self.reader!r}, {plan!r}, epoch={self.epoch}, step={self.step})"


class _Epoch:
    """The iterator of one `for` loop. Threads may share the iterator: each batch goes to one
    thread.
    """

    def __init__(self, loader: Loader) -> None:
        self._loader = loader
        self._lock = threading.Lock()
        self._home = HomeProcess()
        self._ended = False
        self._columns: Iterator[Any] | None = None  # until the first batch is requested
        self._batches: Iterator[Placed] | None = None
        self._was_forked = False
        self._before = 0  # batches of the epoch that came before `_columns`

    def __iter__(self) -> _Epoch:
        return self

    def __next__(self) -> Any:
        if not self._home.is_this_one():
            self._settle_in_this_process()
        with self._lock:
            if self._ended:
                raise StopIteration
            loader = self._loader
            if self._columns is None:
                self._columns = loader._begin()
                self._batches, self._before = loader._delivered(self._columns, 0), 0
            if loader._running is not self._columns:
                next(self._columns)  # raises the error that has ended this iteration
            if self._batches is None:  # an error has ended the batches
                epoch, _, position = loader._loader._core.place()
                delivered = loader._place[0], loader._place[2]
                if self._was_forked or (epoch, position) != delivered:
                    self._was_forked = False
                    # Continues after the last delivered batch. Unfinished batches are read again.
                    loader._rewind()
                    self._columns = loader._running = iter(loader._loader)
                    self._before = loader.step
                self._batches = loader._delivered(self._columns, self._before)
            try:
                place, batch = next(self._batches)
            except StopIteration:
                self._ended = loader._at_beginning = True
                loader._place = loader._loader._core.place()
                raise
            except BaseException:
                self._batches = None
                raise
            loader._place = place
            return batch

    def _settle_in_this_process(self) -> None:
        """Continues from the parent's place in a forked child, which has none of the parent's
        threads.
        """
        _left_behind.append(self._batches)  # destroying the batches would wait for these threads
        self._batches = None
        self._was_forked = True
        self._lock = threading.Lock()
        self._home = HomeProcess()
        self._loader._settle_in_this_process()


_left_behind: list[object] = []


def _restored(arguments: tuple[Any, ...], state: dict[str, Any]) -> Loader:
    loader = Loader.__new__(Loader)
    loader._set_up(*arguments)
    loader.load_state_dict(state)
    return loader
