"""The records of a batch, as a pure function of the epoch and the step."""

from __future__ import annotations

import operator
from functools import cached_property
from typing import Any, NamedTuple, SupportsIndex, TypeAlias

import numpy as np
import numpy.typing as npt

from tfrfast import _native
from tfrfast.base.arguments import Int64Array, Remainder, epoch_number, integer
from tfrfast.base.refused_arguments import explains_arguments
from tfrfast.order.counted import CountedBatching
from tfrfast.order.immutable import Immutable
from tfrfast.order.mixture import Mixture
from tfrfast.order.order import Order
from tfrfast.order.packed import Fill, Packed, fill_of
from tfrfast.order.pickling import rebuild

__all__ = ["Batching", "Found", "Plan"]

Batching: TypeAlias = SupportsIndex | CountedBatching

_DEFAULTS: dict[str, object] = {"rank": 0, "world": 1, "remainder": "keep", "start": 0}


class Found(NamedTuple):
    """Where a record appears in an epoch."""

    step: int
    rank: int
    row: int
    """The row of the batch; in a batch of packs, the record's number among the batch's."""


class Plan(Immutable):
    """The records of every batch, as a pure function of the epoch and the step.

    An order puts a record at each position of an epoch. A step takes the next `world * batch_size`
    positions and deals them to the ranks, so that all ranks together take each position exactly
    once.

    - `order`: a `Shuffle`, `InOrder`, `BlockShuffle`, `Weighted` or `Mixture`.
    - `batching`: rows of a batch of this rank; or a `ByTokens`, which makes a position a batch; or
      a `Packed`, which makes it a row of tokens.
    - `num_records`: the number of records. A Weighted and a Mixture know it.
    - `rank`, `world`: this worker's number, and the number of workers.
    - `remainder`: the treatment of the positions after the last full step, always fewer than `world
      * batch_size`. `"keep"` splits them as evenly as possible, low ranks first. A rank without a
      position has one step fewer, which collectives do not allow. `"drop"` leaves them out of this
      epoch. `"pad"` splits them, too, and fills up every batch with records from the beginning of
      the epoch, so that all ranks have the same number of full batches; `rows` marks the real rows.
      An epoch without records has no batches.
    - `start`: the number of consumed positions of the epoch, from `position_after`. The plan then
      covers the rest of the epoch, and its steps count from there. World and batch size may differ
      from the stopped run's. With `"keep"` and `"pad"`, no record is lost or repeated. With
      `"drop"`, the last plan's world and batch size decide which positions are left out.

    >>> plan = tfr.Plan(tfr.Shuffle(seed=1), 50, num_records=761, rank=3, world=4)
    >>> plan.steps, len(plan.indices(0, 3))
    (4, 40)
    """

    _core: _native.Plan
    _native_order: _native.Order
    _steps: int
    order: Order
    batching: int | CountedBatching
    num_records: int
    rank: int
    world: int
    remainder: Remainder
    start: int

    @explains_arguments
    def __init__(
        self,
        order: Order,
        batching: Batching,
        *,
        num_records: SupportsIndex | None = None,
        rank: SupportsIndex = 0,
        world: SupportsIndex = 1,
        remainder: Remainder = "keep",
        start: SupportsIndex = 0,
    ) -> None:
        if not isinstance(order, Order):
            raise TypeError(f"order must be an order, such as tfr.Shuffle(seed=7), not {order!r}.")
        records = _num_records(order, num_records)
        if isinstance(batching, CountedBatching):
            batching._check(records)
        else:
            batching = integer("batch_size", batching, 1, 2**31 - 1)
        self._settle_plan(
            order,
            batching,
            order._native_order(records, batching),
            num_records=records,
            rank=integer("rank", rank, 0, 2**31 - 1),
            world=integer("world", world, 1, 2**31 - 1),
            remainder=remainder,
            start=integer("start", start, 0, _native.MAX_RECORDS),
        )

    def _settle_plan(
        self,
        order: Order,
        batching: int | CountedBatching,
        native_order: _native.Order,
        num_records: int,
        **share: Any,
    ) -> None:
        rows = batching if isinstance(batching, int) else getattr(batching, "rows", 1)
        core = _native.Plan(order=native_order, seed=order.seed, batch_size=rows, **share)
        self._settle(
            order=order,
            batching=batching,
            num_records=num_records,
            _native_order=native_order,
            _core=core,
            _steps=core.steps,
            **share,
        )

    @property
    def steps(self) -> int:
        """The number of this rank's batches of an epoch, from `start` on."""
        return self._steps

    @property
    def batch_size(self) -> int | None:
        """Rows of a full batch of this rank. None if tokens decide."""
        if isinstance(self.batching, Packed):
            return self.batching.rows
        return self.batching if isinstance(self.batching, int) else None

    @property
    def fill(self) -> Fill:
        """How full the packs of a `Packed` are, and how many records are cut, split, left out."""
        if not isinstance(self.batching, Packed):
            raise TypeError("Only a plan of a Packed has packs to fill.")
        if isinstance(self.order, Mixture):
            return self.order._fill(self.batching)
        order: Any = self._native_order
        return fill_of(order, self.batching)

    @explains_arguments
    def packs(self, epoch: SupportsIndex, step: SupportsIndex) -> list[Int64Array]:
        """Returns the record numbers of each real row of a batch of packs."""
        if not isinstance(self.batching, Packed):
            raise TypeError("Only a plan of a Packed has packs: see indices().")
        records, real = self.rows(epoch, step)
        rows = self._core.packed(epoch_number(epoch), self._step(step))[:, 0]
        return np.split(records[real], np.flatnonzero(np.diff(rows)) + 1) if len(rows) else []

    @property
    def positions(self) -> int:
        """The number of positions of a whole epoch."""
        return self._core.positions

    @property
    def order_text(self) -> str:
        """A line of text that fixes the record at each position of every epoch.

        Plans with the same text may continue each other at `position_after`, with any rank, world,
        batch size and remainder.
        """
        return self._core.order_description()

    @explains_arguments
    def indices(self, epoch: SupportsIndex, step: SupportsIndex) -> Int64Array:
        """Returns the record numbers of a batch. Raises IndexError if the step does not exist."""
        return self._core.indices(epoch_number(epoch), self._step(step))

    @explains_arguments
    def rows(
        self, epoch: SupportsIndex, step: SupportsIndex
    ) -> tuple[Int64Array, npt.NDArray[np.bool_]]:
        """Returns the record numbers of a batch, and a mask of the real rows.

        Rows of padding exist only with `remainder="pad"`, after the real rows.
        """
        return self._core.rows(epoch_number(epoch), self._step(step))

    def _draws(self, epoch: SupportsIndex, step: SupportsIndex) -> npt.NDArray[np.uint64]:
        """Returns the random number for the images of each row of a batch."""
        return self._core.draws(epoch_number(epoch), self._step(step))

    @explains_arguments
    def find(self, record: SupportsIndex, epoch: SupportsIndex) -> list[Found]:
        """Returns the step, the rank and the row of each appearance of a record in an epoch.

        Looks through the plans of all ranks, which takes half a second for 20 million records.
        Rows of padding do not count.
        """
        number = integer("record", record, 0, max(self.num_records - 1, 0))
        found = []
        for rank in range(self.world):
            plan = self._with(rank=rank)
            for step in range(plan.steps):
                records, real = plan.rows(epoch, step)
                rows = np.flatnonzero((records == number) & real).tolist()
                found += [Found(step, rank, row) for row in rows]
        return sorted(found)

    @explains_arguments
    def records_at(
        self, epoch: SupportsIndex, first: SupportsIndex, last: SupportsIndex
    ) -> Int64Array:
        """Returns the record numbers at positions `first` to `last` (excluded), for all ranks."""
        if isinstance(self.batching, CountedBatching):
            raise TypeError("The positions of a plan by tokens are batches: see rows().")
        end = integer("last", last, 0, self.positions)
        begin = integer("first", first, 0, end)
        return self._core.records_at(epoch_number(epoch), begin, end)

    @explains_arguments
    def position_after(self, step: SupportsIndex) -> int:
        """Returns the number of consumed positions after all ranks have taken batch `step`.

        A plan with this `start` continues with any world and batch size. Step -1 stands for the
        moment before the first batch. With `remainder="keep"`, ranks may end with different numbers
        of steps. No rank has more than rank 0, so rank 0's position holds for all ranks.
        """
        number = operator.index(step)
        if -1 <= number < self.steps:
            return self._core.position_after(number)
        raise IndexError(self._no_such_step(number))

    @explains_arguments
    def rest_after(self, position: SupportsIndex) -> Plan:
        """Returns the plan of the rest of an epoch after `position` consumed positions.

        The plan equals this plan with another `start`. Its steps count from there.
        """
        if operator.index(position) == self.start:
            return self
        start = integer("start", position, 0, _native.MAX_RECORDS)
        return self._with(start=start)

    def _with_share(self, rank: int, world: int, remainder: Remainder) -> Plan:
        """Returns the plan of another rank, or of a rank in another world, from the epoch's
        beginning.
        """
        return self._with(rank=rank, world=world, remainder=remainder, start=0)

    def _with(self, **share: Any) -> Plan:
        """Returns this plan with another share of the same order, which is not made again."""
        plan = Plan.__new__(Plan)
        everything = {"num_records": self.num_records, **self._share(), **share}
        plan._settle_plan(self.order, self.batching, self._native_order, **everything)
        return plan

    def _encode(self) -> bytes:
        """Returns this plan as bytes, which the native code of any process decodes."""
        return self._core.encode()

    def _step(self, step: SupportsIndex) -> int:
        number = operator.index(step)
        if 0 <= number < self._steps:
            return number
        raise IndexError(self._no_such_step(number))

    def _no_such_step(self, step: int) -> str:
        return f"Step {step} is out of range: rank {self.rank} has {self.steps} steps in an epoch."

    def _key(self) -> tuple[Any, ...]:
        return (self._core.encode(),)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        # Equal codes have all of these in common. A code holds every index, and takes long to make.
        return hash((self.order_text, self._steps, *self._share().values()))

    def __repr__(self) -> str:
        parts = [repr(self.order), repr(self.batching)]
        if self.order.num_records is None:
            parts.append(f"num_records={self.num_records}")
        share = self._share().items()
        parts += [f"{name}={value!r}" for name, value in share if value != _DEFAULTS[name]]
        return f"Plan({', '.join(parts)})"

    def __reduce__(self) -> tuple[object, ...]:
        options = {"num_records": self.num_records, **self._share()}
        return rebuild, (_native.ORDER_VERSION, Plan, (self.order, self.batching), options)

    def _share(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _DEFAULTS}


def _num_records(order: Order, given: SupportsIndex | None) -> int:
    known, kind = order.num_records, type(order).__name__
    if given is None:
        if known is None:
            raise TypeError(f"A Plan of a {kind} needs num_records: how many records there are.")
        return known
    number = integer("num_records", given, 0, _native.MAX_RECORDS)
    if known not in (None, number):
        raise ValueError(f"num_records is {number}, but the {kind} is of {known} records.")
    return number
