"""Batches that the lengths of records decide."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, TypeAlias

from tfrfast import _native
from tfrfast.base.arguments import Int64Array, IntegerArrayLike, integers
from tfrfast.order.immutable import Immutable

__all__ = ["CountedBatching", "KeptLengths", "Lengths", "not_held", "table_of"]


@dataclass(frozen=True)
class KeptLengths:
    """Lengths in a file. They are read when an order is made, and not held beside the order."""

    path: bytes
    hash: int
    count: int

    def __len__(self) -> int:
        return self.count

    def open(self) -> _native.LengthTable:
        return _native.LengthTable.reopen(self.path, self.hash)

    def lengths(self) -> Int64Array:
        return self.open().lengths()


Lengths: TypeAlias = _native.LengthTable | KeptLengths


def not_held(table: _native.LengthTable) -> Lengths:
    """Returns the table, or the file that has it."""
    return KeptLengths(table.path, table.hash, len(table)) if table.path else table


class CountedBatching(Immutable, ABC):
    """A batching that knows lengths: an array, or the name of a feature whose values are counted
    once. Immutable.
    """

    #: The name of the feature whose lengths count, or several names; None without names.
    _named: Any
    #: The lengths of all records, for each budget of tokens; none before they are counted.
    _tables: tuple[Lengths, ...]

    @abstractmethod
    def _native_order(
        self, num_records: int, indices: Int64Array | None, first: int = 0
    ) -> _native.Order:
        """Returns the order of the records from `first` on. Record numbers count from `first`."""

    @property
    def lengths(self) -> Any:
        """The lengths as they were given: a read-only array, names, or None."""
        if self._named is not None or self._counted() or not self._tables:
            return self._named
        lengths = self._tables[0].lengths()
        lengths.flags.writeable = False
        return lengths

    @abstractmethod
    def _counted(self) -> tuple[str, ...]:
        """Returns the features whose lengths count, one for each budget; none for an array."""

    def _names_to_count(self) -> tuple[str, ...]:
        """Returns the names of the features whose lengths have not been counted yet."""
        return () if self._tables else self._counted()

    def _opened(self) -> list[_native.LengthTable]:
        """Returns the lengths for a moment, to make an order."""
        return [each.open() if isinstance(each, KeptLengths) else each for each in self._tables]

    def _check(self, num_records: int) -> None:
        """Raises unless there is a length for each record."""
        kind = type(self).__name__
        if not self._tables:
            raise TypeError(
                f"{kind} needs lengths. Give an array with one for each record, such as "
                "reader.lengths for their bytes; or give a Loader the name of the feature whose "
                'values count, as in lengths="ids".'
            )
        for table in self._tables:
            if len(table) != num_records:
                raise ValueError(f"There are {len(table)} lengths, but {num_records} records.")

    def _copy(self, **fields: Any) -> Any:
        copy = object.__new__(type(self))
        copy._settle(**vars(self) | fields)
        return copy

    def __reduce__(self) -> tuple[object, ...]:
        tables = [
            each if isinstance(each, KeptLengths) else each.lengths() for each in self._tables
        ]
        return _restored, (type(self), vars(self) | {"_tables": tables})

    def _key(self) -> tuple[Any, ...]:
        tables = ((table.hash, table.path) for table in self._tables)
        return (self._names_to_count(), *tables)


def _restored(kind: type[CountedBatching], fields: dict[str, Any]) -> CountedBatching:
    batching = object.__new__(kind)
    tables = tuple(
        each if isinstance(each, KeptLengths) else _native.LengthTable(each)
        for each in fields.pop("_tables")
    )
    batching._settle(**fields, _tables=tables)
    return batching


def table_of(lengths: IntegerArrayLike) -> _native.LengthTable:
    checked = integers("lengths", lengths, ValueError)
    if checked.ndim != 1:
        raise ValueError(f"lengths must have one dimension, not {checked.ndim}.")
    return _native.LengthTable(checked)
