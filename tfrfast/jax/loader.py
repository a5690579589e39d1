"""A Loader's batches as arrays on devices, copied ahead."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Iterator
from typing import Any, SupportsIndex

from tfrfast.base.arguments import integer
from tfrfast.columns import Batch
from tfrfast.jax.placing import place
from tfrfast.loading.loader import Loader as ColumnLoader
from tfrfast.loading.loader import LoaderStats

__all__ = ["Loader"]


class Loader:
    """Iterates over the batches of a `tfrfast.Loader` as device arrays, one epoch a `for` loop.

        rows = NamedSharding(jax.make_mesh((jax.device_count(),), ("rows",)), PartitionSpec("rows"))
        columns = tfr.Loader("data/train-*", 256, features=["image", "label"], remainder="drop",
                             rank=jax.process_index(), world=jax.process_count())
        for batch in tfrfast.jax.Loader(columns, rows):
            state = train_step(state, batch["image"], batch["label"])

    Args:
      loader: the source of the batches, from its current place. The loader does not move.
      sharding: the sharding of each column over devices. The rows of this process become its part
        of global arrays. None puts all columns on the default device.
      ahead: the number of batches that are copied ahead.

    Batches are pytrees, with `indices`, `valid` and the arrays of `crops` on the devices, too. Byte
    strings and pictures of any size stay in host memory. Integers that do not fit in 32 bits raise
    OverflowError unless `jax_enable_x64` is on.
    """

    def __init__(
        self, loader: ColumnLoader, sharding: Any = None, *, ahead: SupportsIndex = 1
    ) -> None:
        if loader.features is None and loader.transform is None:
            raise ValueError("The Loader decodes nothing: give it features.")
        if sharding is not None and sharding.num_devices > 1 and loader.plan.remainder == "keep":
            raise ValueError(
                'A sharding needs batches of one shape: give the Loader remainder="drop" to train, '
                'or "pad" to evaluate.'
            )
        if sharding is not None and sharding.num_devices > 1 and loader.plan.batch_size is None:
            raise ValueError(
                "A sharding needs batches of one shape, and a ByTokens makes batches of as many "
                "rows as fit. Leave the sharding out, or give the Loader a number of rows."
            )
        self._loader = copy.copy(loader)
        self._sharding = sharding
        self._ahead = integer("ahead", ahead, 0, 2**31 - 1)
        self._state = self._loader.state_dict()
        self._running: _Epoch | None = None

    def __len__(self) -> int:
        """Steps of a whole epoch."""
        return len(self._loader)

    def __iter__(self) -> Iterator[Batch]:
        return _Epoch(self)

    @property
    def epoch(self) -> int:
        """The current epoch: in delivery, or delivered by the next `for`."""
        return int(self._state["epoch"])

    def set_epoch(self, epoch: SupportsIndex) -> None:
        """Makes the next `for` deliver this epoch, from its beginning."""
        self._loader.set_epoch(epoch)
        self._stand()

    def state_dict(self) -> dict[str, Any]:
        """Returns the user's place, without batches that were copied ahead, as a state of
        `tfrfast.Loader`.
        """
        return dict(self._state)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Moves to the place of `state_dict`. The next `for` finishes that epoch first."""
        self._loader.load_state_dict(state)
        self._stand()

    def _stand(self) -> None:
        self._state = self._loader.state_dict()
        self._running = None

    def stats(self) -> LoaderStats:
        """Counters that tell whether the input is the bottleneck."""
        return self._loader.stats()

    def __repr__(self) -> str:
        return f"Loader({self._loader!r}, {self._sharding!r})"


class _Epoch:
    """The iterator of one `for` loop."""

    def __init__(self, owner: Loader) -> None:
        self._owner = owner
        self._columns: Iterator[Batch] | None = None
        self._ready: deque[tuple[dict[str, Any], Batch]] = deque()
        self._taken: Batch | None = None  # not on devices yet
        self._failure: Exception | None = None
        self._is_over = False  # no batch is left to read
        self._is_done = False  # no batch is left to deliver

    def __iter__(self) -> _Epoch:
        return self

    def __next__(self) -> Batch:
        owner = self._owner
        if self._columns is None:
            self._columns = iter(owner._loader)
            owner._stand()
            owner._running = self
        if self._is_done:
            raise StopIteration
        if owner._running is not self:
            raise RuntimeError(
                "This `for` has ended: another `for` has begun, or a state or an epoch was chosen."
            )
        while len(self._ready) <= owner._ahead and not self._is_over and self._failure is None:
            self._begin_one(self._columns)
        if self._ready:
            owner._state, batch = self._ready.popleft()
            return batch
        if self._failure is not None:
            failure, self._failure = self._failure, None  # the next call tries this batch again
            raise failure
        self._is_done = True
        owner._stand()
        raise StopIteration

    def _begin_one(self, columns: Iterator[Batch]) -> None:
        """Reads a batch and begins its copy. An error waits until the batch is requested."""
        owner = self._owner
        try:
            if self._taken is None:
                self._taken = next(columns)
            if not isinstance(self._taken, Batch):
                raise TypeError(
                    "transform must return the Batch it was given, in which it may replace "
                    f"columns, not {type(self._taken).__name__}."
                )
            batch = place(self._taken, owner._sharding)
        except StopIteration:
            self._is_over = True
        except Exception as failure:
            self._failure = failure
        else:
            self._taken = None
            self._ready.append((owner._loader.state_dict(), batch))
