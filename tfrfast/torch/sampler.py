"""The record numbers of each batch, for a DataLoader."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any, SupportsIndex

import torch.utils.data

from tfrfast.base.arguments import Remainder, epoch_number, integer
from tfrfast.loading.records import order_of
from tfrfast.loading.states import check_state
from tfrfast.order import Batching, Mixture, Order, Packed, Plan
from tfrfast.torch.dataset import BatchNumbers
from tfrfast.torch.share import Share

__all__ = ["BatchSampler"]

_FORMAT = "tfrfast.torch.BatchSampler"
_VERSION = 1


class BatchSampler(torch.utils.data.Sampler[list[int]]):
    """The batches of a Plan as lists of record numbers, for `DataLoader(batch_sampler=...)`.

    Args:
      num_records_or_plan: the number of records, or a Mixture; or a Plan, which replaces all other
        arguments.
      batch_size: rows of a batch of this rank, or a ByTokens with the lengths of all records.
      order, shuffle, seed: as in `tfrfast.Loader`.
      rank, world: by default torch.distributed's when an epoch begins; 0 and 1 without it.
      remainder: as in Plan; by default "keep" with one rank, and "pad" with several. A Dataset
        marks rows of padding in `batch.valid`.

    Each `for` is the next epoch.
    """

    def __init__(
        self,
        num_records_or_plan: SupportsIndex | Mixture | Plan,
        batch_size: Batching | None = None,
        *,
        order: Order | None = None,
        shuffle: bool | None = None,
        seed: SupportsIndex | None = None,
        rank: int | None = None,
        world: int | None = None,
        remainder: Remainder | None = None,
    ) -> None:
        if isinstance(num_records_or_plan, Plan):
            if any(
                x is not None for x in (batch_size, order, shuffle, seed, rank, world, remainder)
            ):
                raise TypeError("A Plan says everything about the order: give nothing beside it.")
            plan = num_records_or_plan
            self._share = Share(plan.rank, plan.world)
            self._plan, start = plan.rest_after(0), plan.start
        elif batch_size is None:
            raise TypeError("batch_size is missing.")
        else:
            source = num_records_or_plan
            self._share = Share(rank, world, remainder)
            number = None if isinstance(source, Mixture) else source
            chosen, share = order_of(source, order, shuffle, seed), self._share.so_far()
            self._plan, start = Plan(chosen, batch_size, num_records=number, **share), 0
        if isinstance(self._plan.batching, Packed):
            raise TypeError(
                "A sampler gives record numbers, and Packed puts decoded values into rows: use "
                "tfrfast.torch.Loader or IterableDataset."
            )
        self._epoch, self._start = 0, start
        self._at_beginning = True
        self._current: _SampledEpoch | None = None

    @property
    def plan(self) -> Plan:
        """The record numbers of each batch of this rank."""
        self._plan = self._share.of(self._plan)
        return self._plan

    @property
    def batch_size(self) -> int | None:
        """Rows of a full batch. None if tokens decide."""
        return self._plan.batch_size

    @property
    def epoch(self) -> int:
        """The epoch of the last `for`, or of the next `for`."""
        return self._epoch

    def __len__(self) -> int:
        """Batches of a whole epoch."""
        return self.plan.steps

    def __iter__(self) -> Iterator[list[int]]:
        return _SampledEpoch(self)

    def _begin(self, iterator: _SampledEpoch) -> tuple[int, int]:
        """Returns the epoch and the first step of an iterator whose first batch is requested.

        The epoch counts only then, because a DataLoader with workers makes two iterators for its
        first epoch.
        """
        self._epoch, self._start = self._next()
        self._at_beginning, self._current = False, iterator
        return self._epoch, self._start

    def _next(self) -> tuple[int, int]:
        """Returns the place where the next `for` begins."""
        return (self._epoch, self._start) if self._at_beginning else (self._epoch + 1, 0)

    def set_epoch(self, epoch: SupportsIndex) -> None:
        """Makes the next `for` deliver this epoch, from its beginning.

        If a state of this epoch has just been loaded, the next `for` finishes the epoch, as it
        would without this call.
        """
        number = epoch_number(epoch)
        if not self._at_beginning or self._epoch != number:
            self._move(number, 0)

    def state_dict(self, delivered: SupportsIndex | None = None) -> dict[str, Any]:
        """Returns the user's place: a few hundred bytes, JSON-able, the same for every rank.

        A DataLoader requests batches ahead of delivery, and does not tell its sampler of
        deliveries. So count the delivered batches of the current `for`, and give their number as
        `delivered`. Without `delivered`, the state counts all requested batches.
        """
        current = self._current
        if current is None:
            if delivered is not None:
                integer("delivered", delivered, 0, 0)
            return self._state(self._epoch, self._start)
        return current.state_dict(delivered)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Moves to the place of `state_dict`. The next `for` finishes that epoch first.

        World, rank, batch size and remainder may differ. Raises ValueError for another order.
        """
        check_state("BatchSampler", state, self._state(0, 0), ["order"])
        self._plan.rest_after(state["position"])  # raises before any change
        self._move(operator.index(state["epoch"]), operator.index(state["position"]))

    def _move(self, epoch: int, position: int) -> None:
        self._epoch, self._start = epoch, position
        self._at_beginning, self._current = True, None

    def _state(self, epoch: int, position: int) -> dict[str, Any]:
        return {
            "format": _FORMAT,
            "version": _VERSION,
            "order": self._plan.order_text,
            "epoch": epoch,
            "position": position,
        }

    def __repr__(self) -> str:
        return f"BatchSampler({self._plan!r}, epoch={self._epoch})"


class _SampledEpoch:
    """The iterator of one `for` loop. A StatefulDataLoader saves the iterator's state."""

    def __init__(self, sampler: BatchSampler) -> None:
        self._sampler = sampler
        self._rest: Plan | None = None  # until the first batch is requested
        self._epoch = self._step = 0
        self._ended = False

    def __iter__(self) -> _SampledEpoch:
        return self

    def __next__(self) -> list[int]:
        rest = self._rest
        if rest is None:
            self._epoch, start = self._sampler._begin(self)
            rest = self._rest = self._sampler.plan.rest_after(start)
            self._step, self._ended = 0, False
        if self._step == rest.steps:
            self._ended = True
            raise StopIteration
        numbers, valid = rest.rows(self._epoch, self._step)
        draws = rest._draws(self._epoch, self._step)
        self._step += 1
        return BatchNumbers(numbers.tolist(), valid, draws, self._epoch)

    def state_dict(self, delivered: SupportsIndex | None = None) -> dict[str, Any]:
        if self._rest is None or (delivered is None and self._ended):
            return self._sampler._state(*self._sampler._next())
        count = self._step
        if delivered is not None:
            count = integer("delivered", delivered, 0, self._step)
        return self._sampler._state(self._epoch, self._rest.position_after(count - 1))

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._sampler.load_state_dict(state)
        self._rest = None
