"""A random order of n records, computed position by position."""

from __future__ import annotations

from typing import Any, SupportsIndex, overload

import numpy as np

from tfrfast import _native
from tfrfast.base.arguments import (
    Int64Array,
    IntegerArrayLike,
    as_number,
    epoch_number,
    integer,
    integers,
    no_such,
    seed_number,
)
from tfrfast.order.pickling import rebuild

__all__ = ["Permutation"]


class Permutation:
    """A random order of `range(n)`: `perm[i]` is the record at position `i`.

    `Permutation(n, seed, epoch)` is a bijection of `[0, n)`, computed position by position by a
    keyed Feistel network. It takes no memory for any `n`, and `inverse` is as cheap as `perm[i]`.
    The order is the same on every machine and in every version with the same
    `Permutation.version`. Different seeds and epochs give unrelated orders.

    `perm[i]` gives an int, `perm[array]` and `perm[slice]` an int64 array of the same shape.
    Negative positions count from the end; positions outside the range raise `IndexError`.

    `n` may be from 0 to `2**62`, `seed` from `-2**63` to `2**64 - 1` (a negative seed is the same
    as `seed + 2**64`) and `epoch` from 0 to `2**64 - 1`.
    """

    __slots__ = ("_core", "_epoch", "_seed", "_size")

    version = _native.ORDER_VERSION

    def __init__(self, n: SupportsIndex, seed: SupportsIndex, epoch: SupportsIndex = 0) -> None:
        self._size = integer("n", n, 0, _native.MAX_RECORDS)
        self._seed = seed_number(seed)
        self._epoch = epoch_number(epoch)
        self._core = _native.Permutation(self._size, self._seed, self._epoch)

    @property
    def seed(self) -> int:
        """The seed, as a number from 0 to `2**64 - 1`."""
        return self._seed

    @property
    def epoch(self) -> int:
        return self._epoch

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, position: int | np.integer[Any]) -> int: ...
    @overload
    def __getitem__(self, position: IntegerArrayLike | slice) -> Int64Array: ...
    def __getitem__(
        self, position: int | np.integer[Any] | IntegerArrayLike | slice
    ) -> int | Int64Array:
        if isinstance(position, slice):
            positions = range(self._size)[position]
            if positions.step == 1:
                return self._core.map_range(positions.start, len(positions))
            return self._core.map(
                np.arange(positions.start, positions.stop, positions.step, dtype=np.int64)
            )
        number = as_number("a position", position)
        if number is not None:
            return self._core.at(self._checked("Position", number))
        return self._core.map(integers("positions", position))

    @overload
    def inverse(self, record: int | np.integer[Any]) -> int: ...
    @overload
    def inverse(self, record: IntegerArrayLike) -> Int64Array: ...
    def inverse(self, record: int | np.integer[Any] | IntegerArrayLike) -> int | Int64Array:
        """Returns the position of `record`: `perm.inverse(perm[i]) == i`.

        Takes and returns ints or arrays, and counts negative numbers from the end, like
        `perm[...]`.
        """
        number = as_number("a record", record)
        if number is not None:
            return self._core.inverse_at(self._checked("Record", number))
        return self._core.inverse(integers("records", record))

    def _checked(self, what: str, number: int) -> int:
        if -self._size <= number < self._size:
            return number if number >= 0 else number + self._size
        raise no_such(what, number, self._size)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Permutation):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"Permutation({self._size}, seed={self._seed}, epoch={self._epoch})"

    def __reduce__(self) -> tuple[object, ...]:
        return rebuild, (self.version, Permutation, self._key(), {})

    def _key(self) -> tuple[int, int, int]:
        return self._size, self._seed, self._epoch
