"""A Loader whose batches pass through one more stage: the base of the adapters' Loaders."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from typing import Any, SupportsIndex

from tfrfast import _native
from tfrfast.loading.loader import Loader, LoaderStats
from tfrfast.loading.timeline import Timeline
from tfrfast.order import Plan, Weight

__all__ = ["WrappedLoader"]


class WrappedLoader:
    """Has the methods of `_loader`. An epoch begins when its first batch is requested, because
    DataLoader and Lightning make iterators that they never use.
    """

    _loader: Loader

    def _settled(self) -> Loader:
        """Returns the loader for the next epoch."""
        return self._loader

    def _begin(self) -> Iterator[Any]:
        return iter(self._settled())

    def __len__(self) -> int:
        """Steps of a whole epoch."""
        return len(self._settled())

    def __iter__(self) -> Iterator[Any]:
        self._settled()
        return _WrappedEpoch(self)

    @property
    def plan(self) -> Plan:
        """The record numbers of each batch of this rank."""
        return self._settled().plan

    @property
    def epoch(self) -> int:
        """The current epoch: in delivery, or delivered by the next `for`."""
        return self._loader.epoch

    @property
    def step(self) -> int:
        """Batches of this epoch delivered, since its beginning or since a state was loaded."""
        return self._loader.step

    def set_epoch(self, epoch: SupportsIndex) -> None:
        """Makes the next `for` deliver this epoch, from its beginning."""
        self._loader.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """The user's place: a few hundred bytes, JSON-able, the same for every rank.

        Counts delivered batches. `tfrfast.Loader` has the same states.
        """
        return self._loader.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Moves to the place of `state_dict`. The next `for` finishes that epoch first.

        World, rank, batch size, remainder, transform and threads may differ. Raises ValueError for
        other data, another seed or another shuffle, which cannot continue the same epoch.
        """
        self._loader.load_state_dict(state)

    def change_weights(self, weights: Mapping[str, Weight]) -> None:
        """Changes the weights of a Mixture from the user's place on, on every rank alike.

        A running `for` ends with RuntimeError at its next batch.
        """
        self._loader.change_weights(weights)

    def stats(self) -> LoaderStats:
        """Counters of reading that tell whether the input is the bottleneck."""
        return self._loader.stats()

    def timeline(self, steps: SupportsIndex = 300) -> Timeline:
        """Notes what happens in the next steps, as `tfrfast.Loader.timeline` does."""
        return self._settled().timeline(steps)

    def close(self) -> None:
        """Stops the threads and drops the batches that were read ahead. The reader stays open."""
        self._loader.close()


class _WrappedEpoch:
    """The iterator of one `for` loop. Threads may share the iterator: each batch goes to one
    thread.
    """

    def __init__(self, owner: WrappedLoader) -> None:
        self._owner = owner
        self._batches: Iterator[Any] | None = None  # until the first batch is requested
        self._beginning = threading.Lock()
        self._home = _native.HomeProcess()

    def __iter__(self) -> _WrappedEpoch:
        return self

    def __next__(self) -> Any:
        return next(self._batches or self._begun())

    def _begun(self) -> Iterator[Any]:
        if not self._home.is_this_one():  # another thread may have held the lock at the fork
            self._beginning, self._home = threading.Lock(), _native.HomeProcess()
        with self._beginning:
            if self._batches is None:
                self._batches = self._owner._begin()
            return self._batches
