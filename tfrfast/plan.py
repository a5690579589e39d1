"""Which records make up a batch: a pure function of the epoch and the step."""

from __future__ import annotations

import operator
from types import EllipsisType
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from tfrfast import _native
from tfrfast._base.arguments import (
    Int64Array,
    IntegerArrayLike,
    Remainder,
    epoch_number,
    integer,
    integers,
    seed_number,
)
from tfrfast._base.by_length import ByLength
from tfrfast._base.own_order import OwnOrder
from tfrfast._base.pickling import rebuild
from tfrfast._base.whole_weights import whole_weights
from tfrfast.block_shuffle import BlockShuffle, checked_shuffle, order_of

__all__ = ["Plan"]

_DEFAULTS: dict[str, object] = {
    "shuffle": True,
    "seed": 0,
    "rank": 0,
    "world": 1,
    "remainder": "keep",
    "start": 0,
}


class Plan:
    """The records of every batch, as a pure function of the epoch and the step.

    An epoch has a position for each record (or for each of `indices`). `shuffle` says which record
    stands at which position. A step takes the next `world * batch_size` positions and deals them to
    the ranks, so that all ranks together take each position exactly once.

    `num_records` may also be a `Mixture`, which says the rest about the order: then `shuffle`,
    `seed` and `indices` are its own, and may not be given.

    - `shuffle`: `True` (any record at any place, a new order every epoch; the default), `False`
      (the given order) or a `BlockShuffle`.
    - `seed`: from `-2**63` to `2**64 - 1`, 0 by default. A negative seed is the same as
      `seed + 2**64`.
    - `rank`, `world`: this worker's number, and the number of workers.
    - `remainder`: what becomes of the positions after the last full step. `"keep"` splits them as
      evenly as possible, low ranks first. A rank that gets none has one step fewer, which
      collectives do not allow. `"drop"` leaves them out of this epoch; they are always fewer than
      `world * batch_size`. `"pad"` splits them, too, and fills up every batch with records from the
      beginning of the epoch, so that all ranks have the same number of full batches; `rows` tells
      which rows are real. An epoch without records has no batches.
    - `indices`: only these record numbers, in this order before shuffling. Repeats are allowed.
    - `weights`: one for each record, 0 or more. An epoch draws `length` records, by default as many
      as there are. Each comes as often as its weight says, rounded down or up: with an expected
      count of 2.3, 2 or 3 times. Which ones are rounded up differs from epoch to epoch. Not
      together with `indices`.
    - `batch_tokens`: in place of a batch size. Every batch then has records of about the same
      length, and as many of them as fit: its rows times its longest length are at most
      `batch_tokens`. Each record comes once, batches are in random order, and a rank takes whole
      ones. A position is a batch, also for `start` and `remainder`.
    - `lengths`: of all records, for `batch_tokens`.
    - `start`: how many positions of the epoch are already consumed, as `position_after` gives them.
      The plan then covers the rest of the epoch, and its steps count from there. World and batch
      size may differ from those of the run that stopped. With `"keep"` and `"pad"`, nothing is lost
      or repeated. With `"drop"`, the last plan's world and batch size decide what is left out.

    >>> plan = tfr.Plan(761, 50, shuffle=False)
    >>> plan.steps, len(plan.indices(0, 15))
    (16, 11)
    """

    __slots__ = (
        "_chosen",
        "_core",
        "_own_order",
        "_steps",
        "_weights",
        "batch_size",
        "num_records",
        "rank",
        "remainder",
        "seed",
        "shuffle",
        "start",
        "world",
    )

    _core: _native.Plan
    _chosen: Int64Array | None  # indices
    _own_order: OwnOrder | None
    _weights: Int64Array | None
    _steps: int
    num_records: int
    batch_size: int
    shuffle: bool | BlockShuffle
    seed: int
    rank: int
    world: int
    remainder: Remainder
    start: int

    def __init__(
        self,
        num_records: SupportsIndex | OwnOrder,
        batch_size: SupportsIndex | None = None,
        *,
        shuffle: bool | BlockShuffle | EllipsisType = ...,
        seed: SupportsIndex | EllipsisType = ...,
        rank: SupportsIndex = 0,
        world: SupportsIndex = 1,
        remainder: Remainder = "keep",
        indices: IntegerArrayLike | None = None,
        weights: npt.ArrayLike | None = None,
        length: SupportsIndex | None = None,
        batch_tokens: SupportsIndex | None = None,
        lengths: IntegerArrayLike | None = None,
        start: SupportsIndex = 0,
    ) -> None:
        if batch_tokens is not None:
            given = [each is not None for each in (batch_size, indices, weights, length)]
            if shuffle is not ... or any(given):
                raise TypeError(
                    "batch_tokens makes batches of all records: leave batch_size, shuffle, "
                    "indices, weights and length out."
                )
            number = seed_number(0 if isinstance(seed, EllipsisType) else seed)
            num_records = _by_length(num_records, lengths, batch_tokens, number)
            batch_size, seed = 1, ...
        elif batch_size is None:
            raise TypeError("A Plan needs batch_size, or batch_tokens.")
        elif lengths is not None:
            raise TypeError("lengths are for batch_tokens.")
        own_order = None
        if isinstance(num_records, OwnOrder):
            own_order = num_records
            given = [each is not None for each in (indices, weights, length)]
            if shuffle is not ... or seed is not ... or any(given):
                kind = type(own_order).__name__
                raise TypeError(f"shuffle, seed, indices, weights and length are the {kind}'s own.")
            num_records, seed = own_order.num_records, own_order.seed
        fields: dict[str, Any] = {
            "num_records": integer("num_records", num_records, 0, _native.MAX_RECORDS),
            "batch_size": integer("batch_size", batch_size, 1, 2**31 - 1),
            "shuffle": checked_shuffle(True if shuffle is ... else shuffle),
            "seed": seed_number(0 if isinstance(seed, EllipsisType) else seed),
            "rank": integer("rank", rank, 0, 2**31 - 1),
            "world": integer("world", world, 1, 2**31 - 1),
            "remainder": remainder,
            "start": integer("start", start, 0, _native.MAX_RECORDS),
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)
        records = fields.pop("num_records")
        shuffled = fields.pop("shuffle")
        if own_order is None:
            order = _order(shuffled, indices, weights, length, records)
        else:
            order = own_order.order_for(fields["batch_size"])
        object.__setattr__(self, "_own_order", own_order)
        chosen = order.indices if isinstance(order, _native.ChosenOrder) else None
        object.__setattr__(self, "_chosen", chosen)
        weighted = order.weights if isinstance(order, _native.WeightedOrder) else None
        object.__setattr__(self, "_weights", weighted)
        core = _native.Plan(order=order, **fields)
        object.__setattr__(self, "_core", core)
        object.__setattr__(self, "_steps", core.steps)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"A Plan cannot be changed; make another one with {name}={value!r}.")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("A Plan cannot be changed.")

    @property
    def steps(self) -> int:
        """How many batches of an epoch this rank gets, from `start` on."""
        return self._steps

    @property
    def positions(self) -> int:
        """The positions of a whole epoch: `num_records`, the number of `indices`, or `length`."""
        return self._core.positions

    @property
    def order(self) -> str:
        """A line of text that fixes which record stands at which position of every epoch.

        Plans with the same text may continue each other at `position_after`, whatever their rank,
        world, batch size and remainder.
        """
        return self._core.order_description()

    def indices(self, epoch: SupportsIndex, step: SupportsIndex) -> Int64Array:
        """The record numbers of a batch. Raises IndexError if the epoch has no such step."""
        return self._core.indices(epoch_number(epoch), self._step(step))

    def rows(
        self, epoch: SupportsIndex, step: SupportsIndex
    ) -> tuple[Int64Array, npt.NDArray[np.bool_]]:
        """The record numbers of a batch, and for each row whether it is real.

        Rows that are not real exist only with `remainder="pad"`, after the real ones.
        """
        return self._core.rows(epoch_number(epoch), self._step(step))

    def position_after(self, step: SupportsIndex) -> int:
        """Positions of the epoch consumed once all ranks have taken the batches up to `step`.

        It is the `start` of a plan that continues with any world and batch size. Step -1 stands for
        the moment before the first batch. With `remainder="keep"`, ranks may end with different
        numbers of steps. None has more than rank 0, so its position is everyone's.
        """
        number = operator.index(step)
        if -1 <= number < self.steps:
            return self._core.position_after(number)
        raise IndexError(self._no_such_step(number))

    def rest_after(self, position: SupportsIndex) -> Plan:
        """The plan of the rest of an epoch of which `position` positions are consumed.

        It is this plan with another `start`. Its steps count from there.
        """
        if operator.index(position) == self.start:
            return self
        fields = self._arguments() | {"start": position}
        return Plan(fields.pop("num_records"), fields.pop("batch_size"), **fields)

    def encode(self) -> bytes:
        """This plan as bytes, which the native code of any process decodes."""
        return self._core.encode()

    def _step(self, step: SupportsIndex) -> int:
        number = operator.index(step)
        if 0 <= number < self._steps:
            return number
        raise IndexError(self._no_such_step(number))

    def _no_such_step(self, step: int) -> str:
        return f"Step {step} is out of range: rank {self.rank} has {self.steps} steps in an epoch."

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Plan):
            return NotImplemented
        return self._core.encode() == other._core.encode()

    def __hash__(self) -> int:
        return hash((self.order, *self._fields().values()))

    def __repr__(self) -> str:
        fields = self._fields()
        parts = [str(fields.pop("num_records")), str(fields.pop("batch_size"))]
        if self._own_order is not None:
            parts[0] = repr(self._own_order)
            if self._own_order.rows_vary:
                parts.pop()
            del fields["seed"]
        parts += [f"{name}={value!r}" for name, value in fields.items() if value != _DEFAULTS[name]]
        if self._chosen is not None:
            parts.append(f"indices=<{self.positions} record numbers>")
        if self._weights is not None:
            parts.append(f"weights=<{self.num_records} weights>, length={self.positions}")
        return f"Plan({', '.join(parts)})"

    def __reduce__(self) -> tuple[object, ...]:
        fields = self._arguments()
        arguments = fields.pop("num_records"), fields.pop("batch_size")
        return rebuild, (_native.ORDER_VERSION, Plan, arguments, fields)

    def _arguments(self) -> dict[str, Any]:
        fields = self._fields() | {"indices": self._chosen}
        if self._own_order is not None:
            fields |= {"num_records": self._own_order, "shuffle": ..., "seed": ...}
        if self._weights is not None:
            fields |= {"weights": self._weights, "length": self.positions}
        return fields

    def _fields(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in ("num_records", "batch_size", *_DEFAULTS)}


def _by_length(
    num_records: SupportsIndex | OwnOrder,
    lengths: IntegerArrayLike | None,
    batch_tokens: SupportsIndex,
    seed: int,
) -> ByLength:
    if lengths is None:
        raise TypeError("batch_tokens needs lengths, one for each record.")
    if isinstance(num_records, OwnOrder):
        raise TypeError("batch_tokens is for one data set.")
    by_length = ByLength(lengths, batch_tokens, seed)
    if by_length.num_records != operator.index(num_records):
        raise ValueError(
            f"There are {by_length.num_records} lengths, but {operator.index(num_records)} records."
        )
    return by_length


def _order(
    shuffle: bool | BlockShuffle,
    indices: IntegerArrayLike | None,
    weights: npt.ArrayLike | None,
    length: SupportsIndex | None,
    num_records: int,
) -> _native.Order:
    if weights is not None:
        if indices is not None:
            raise TypeError("Give weights or indices, not both. A weight of 0 leaves a record out.")
        draws = num_records if length is None else integer("length", length, 0, _native.MAX_RECORDS)
        return _native.WeightedOrder(order_of(shuffle, draws), whole_weights(weights, num_records))
    if length is not None:
        raise TypeError("length is for weights: how many records an epoch draws.")
    if indices is None:
        return order_of(shuffle, num_records)
    chosen = integers("indices", indices, ValueError)
    if chosen.ndim != 1:
        raise ValueError(f"indices must have one dimension, not {chosen.ndim}.")
    return _native.ChosenOrder(order_of(shuffle, len(chosen)), chosen, num_records)
