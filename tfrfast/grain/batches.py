"""A Loader's batches as a Grain dataset."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, SupportsIndex

import grain

from tfrfast.base.arguments import UNLIMITED, integer
from tfrfast.base.refused_arguments import explains_arguments
from tfrfast.columns import Batch
from tfrfast.loading.loader import Loader
from tfrfast.loading.records import read_step
from tfrfast.loading.states import check_state
from tfrfast.order import Packed, Plan

__all__ = ["IterDataset"]

_FORMAT = "tfrfast.grain.IterDataset"
_VERSION = 1


class IterDataset(grain.IterDataset):
    """The batches of a `tfrfast.Loader`, in its order, from the loader's current place.

        loader = tfr.Loader("data/train-*", 256, features=["image", "label"], seed=1)
        dataset = tfrfast.grain.IterDataset(loader, epochs=10).map(augment)

    Args:
      loader: the source of the plan, the features and the threads. The loader does not move.
      epochs: the number of epochs to deliver, including the loader's current epoch; None never
        ends. Each epoch has its own order. `repeat` would deliver the same epochs again.

    The loader's C++ threads read ahead, so reading needs no `mp_prefetch`. If Python's work in
    `map` needs `mp_prefetch`, worker i of n decodes batches i, i + n, ... and batches arrive in the
    same order.

    Batches of a `Packed` are dicts with Grain's names: `ids`, `ids_segment_ids`, `ids_positions`.

    Ranks are the Loader's: give it `rank=jax.process_index()` and `world=jax.process_count()`.
    """

    @explains_arguments
    def __init__(self, loader: Loader, *, epochs: SupportsIndex | None = 1) -> None:
        super().__init__()
        self._epochs = None if epochs is None else integer("epochs", epochs, 1, UNLIMITED)
        self._loader = loader._counted_copy()
        self._part: tuple[int, int] | None = None

    def set_slice(self, sl: slice, sequential_slice: bool = False) -> None:
        """Delivers only batches `sl.start`, `sl.start + sl.step`, ..., as worker processes need.

        Ignores `sequential_slice`: workers always take batches in turn.
        """
        part = sl.start or 0, sl.step or 1
        if sl.stop is not None or not 0 <= part[0] < part[1]:
            raise ValueError(f"A slice must be slice(i, None, n) with 0 <= i < n, not {sl}.")
        if self._part not in (None, part):
            raise ValueError(
                "This IterDataset is already a slice of a Loader's batches. Give rank and world to "
                "the Loader instead, and leave slices to mp_prefetch."
            )
        self._part = part

    def __iter__(self) -> grain.DatasetIterator:
        return _BatchIterator(self._loader, self._epochs, self._part or (0, 1))

    def __str__(self) -> str:
        return f"IterDataset({self._loader!r}, epochs={self._epochs})"


class _BatchIterator(grain.DatasetIterator):
    """Batches of the rest of an epoch and of later epochs: all batches, or one worker's."""

    def __init__(self, loader: Loader, epochs: int | None, part: tuple[int, int]) -> None:
        super().__init__()
        self._loader = loader._counted_copy()  # each iterator has a place of its own
        self._part = part
        self._end = None if epochs is None else loader.epoch + epochs
        self._begin(loader.state_dict())

    def _begin(self, state: dict[str, Any]) -> None:
        """Moves to the place of a Loader's state, and there to this worker's first step."""
        self._loader.load_state_dict(state)
        self._batches: Iterator[Any] | None = None
        self._epoch: int = state["epoch"]
        self._position: int = state["position"]
        self._plan = self._loader.plan.rest_after(self._position)
        self._step = self._part[0]

    def __next__(self) -> Any:
        if self._loader.plan.steps == 0:
            raise StopIteration
        batch = self._next_of_all() if self._part == (0, 1) else self._next_of_part()
        is_packed = isinstance(batch, Batch) and isinstance(self._loader.plan.batching, Packed)
        return batch.as_dict() if is_packed else batch

    def _next_of_all(self) -> Any:
        while self._end is None or self._epoch < self._end:
            if self._batches is None:
                self._batches = iter(self._loader)
            try:
                return next(self._batches)
            except StopIteration:
                self._batches = None
                self._epoch = self._loader.epoch
        raise StopIteration

    def _next_of_part(self) -> Any:
        epoch, step, plan = self._here()
        if self._end is not None and epoch >= self._end:
            raise StopIteration
        batch = read_step(self._loader.reader, self._loader.features, plan, epoch, step)
        if self._loader.transform is not None:
            batch = self._loader.transform(batch)
        # The batch counts as delivered only after a successful read.
        if epoch != self._epoch:
            self._epoch, self._position, self._plan = epoch, 0, plan
        self._step = step + self._part[1]
        return batch

    def _here(self) -> tuple[int, int, Plan]:
        """Returns the epoch, step and plan of the next batch, which may lie in a later epoch."""
        epoch, step, plan = self._epoch, self._step, self._plan
        while step >= plan.steps:
            epoch, step, plan = epoch + 1, step - plan.steps, self._loader.plan
        return epoch, step, plan

    def get_state(self) -> dict[str, Any]:
        """Returns the user's place as a Loader's state, and this iterator's slice of batches."""
        state = self._loader.state_dict()
        if self._part != (0, 1):
            state |= {"epoch": self._epoch, "position": self._position}
        plan = self._loader.plan
        return {
            **state,
            "format": _FORMAT,
            "version": _VERSION,
            "worker": self._part[0],
            "workers": self._part[1],
            "step": self._step,
            "world": plan.world,
            "batch_size": plan.batch_size,
            "remainder": plan.remainder,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Moves to the place of `get_state`.

        A worker's state needs an iterator with the same options. Any other state may come from any
        rank, and from another number of ranks, batch size or number of threads.
        """
        mine = self.get_state()
        # Grain gives each worker the first state of an iterator of all batches.
        is_of_a_worker = isinstance(state, dict) and state.get("workers", 1) != 1
        shares = ["worker", "workers", "world", "batch_size", "remainder"]
        check_state("IterDataset", state, mine, shares if is_of_a_worker else [])
        step = integer("step", state["step"], 0, self._loader.plan.steps + self._part[1])
        own = self._loader.state_dict()
        where = {key: state[key] for key in own}
        self._begin(where | {key: own[key] for key in ("format", "version")})
        if is_of_a_worker:
            self._step = step
