"""Columns of other programs, imported through Arrow's PyCapsule interface."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tfrfast._native import ArrowBatches, import_array, join_pieces
from tfrfast.columns.arrays import Array, splits_of
from tfrfast.columns.arrow import FORMATS
from tfrfast.columns.ragged import Ragged, take_values
from tfrfast.columns.strings import Bytes

__all__ = ["ArrowNode", "exports_arrow"]

_NUMBERS = {each: name for name, each in FORMATS.items() if name != "bool"}
_NUMBERS |= dict.fromkeys(("tdD", "tts", "ttm"), "int32")  # other times are int64
_OFFSETS: dict[str, Any] = {
    **dict.fromkeys(("u", "z", "+l", "+vl"), np.int32),
    **dict.fromkeys(("U", "Z", "+L", "+vL"), np.int64),
}
_VIEW_BYTES = 16
_INLINE_BYTES = 12


def exports_arrow(value: object) -> bool:
    """True if `value` is a column or a table of another program."""
    return hasattr(value, "__arrow_c_stream__") or hasattr(value, "__arrow_c_array__")


class ArrowNode(NamedTuple):
    """A column, or the rows of a table with columns as children. A view of memory."""

    name: str
    format: str
    length: int
    offset: int
    #: The number of null rows, or -1 if unknown.
    null_count: int
    buffers: list[npt.NDArray[np.uint8] | None]
    children: list[ArrowNode]
    dictionary: ArrowNode | None

    @classmethod
    def batches(cls, value: Any) -> Iterator[ArrowNode]:
        """Yields the parts of a column or a table."""
        if hasattr(value, "_batches"):  # a scan of tfrfast, whose errors keep their class this way
            for batch in value._batches():
                yield cls._of(import_array(*batch.__arrow_c_array__()))
        elif hasattr(value, "__arrow_c_stream__"):
            yield from map(cls._of, ArrowBatches(value.__arrow_c_stream__()))
        else:
            yield cls._of(import_array(*value.__arrow_c_array__()))

    @classmethod
    def _of(cls, node: Any) -> ArrowNode:
        made = cls(*node)
        return made._replace(
            children=[cls._of(child) for child in made.children],
            dictionary=None if made.dictionary is None else cls._of(made.dictionary),
        )

    @property
    def is_table(self) -> bool:
        return self.format == "+s"

    def present(self) -> npt.NDArray[np.bool_]:
        """Returns a mask of the rows that are not null."""
        if self.format == "n":
            return np.zeros(self.length, np.bool_)
        bits = self.buffers[0] if self.buffers else None
        if self.null_count == 0 or bits is None:
            return np.ones(self.length, np.bool_)
        return self._bits(bits)

    def rows(self, some: slice) -> ArrowNode:
        """Returns consecutive rows of the column."""
        if some.start == 0 and some.stop == self.length:
            return self
        return self._replace(
            offset=self.offset + some.start, length=some.stop - some.start, null_count=-1
        )

    def offsets(self, dtype: Any) -> Array:
        """Returns the first item of each row of a list, and the end of the last row."""
        if self.buffers[1] is None:
            return np.zeros(self.length + 1, dtype)
        found: Array = self.buffers[1].view(_OFFSETS[self.format])
        some: Array = found[self.offset : self.offset + self.length + 1]
        return some.astype(dtype, copy=False)

    def column(self) -> Array | Bytes | Ragged:
        """Returns the values, with arbitrary values in null rows.

        Raises TypeError for a type that no Example holds, and ValueError for nulls inside rows that
        are not null.
        """
        return self._column(self.present())

    def _column(self, present: npt.NDArray[np.bool_]) -> Array | Bytes | Ragged:
        kind = self.format
        if self.dictionary is not None:
            return self._looked_up(present)
        if kind == "n":
            return np.zeros(self.length, np.int64)
        if kind == "b":
            bits = self.buffers[1]
            return np.zeros(self.length, np.bool_) if bits is None else self._bits(bits)
        if kind in _NUMBERS or kind[:2] in ("td", "tt", "ts", "tD"):  # "ti" is an interval
            return self._numbers(_NUMBERS.get(kind, "int64"))
        if kind in ("u", "z", "U", "Z"):
            return Bytes(_or_empty(self.buffers[2]), self.offsets(np.int64))
        if kind in ("vu", "vz"):
            return self._viewed(present)
        if kind.startswith("w:"):
            width = int(kind[2:])
            ends = (self.offset + np.arange(self.length + 1)) * width
            return Bytes(_or_empty(self.buffers[1]), ends)
        if kind in ("+l", "+L"):
            splits = self.offsets(np.int64)
            if self._has_plain_items():
                return Ragged(self.children[0].column(), splits)
            return Ragged(
                self._items(_of_rows(splits[:-1], np.diff(splits), present, self.children[0])),
                splits,
            )
        if kind in ("+vl", "+vL"):
            return self._list_views(present)
        if kind.startswith("+w:"):
            return self._fixed_lists(int(kind[3:]), present)
        raise TypeError(
            f"Column {self.name!r}: Arrow's type {kind!r} has no place in an Example. Turn it into "
            "numbers, strings, or lists of numbers or strings."
        )

    def _has_plain_items(self) -> bool:
        """True if no item is null, and no item is a list that may hold nulls."""
        items = self.children[0]
        return not items.children and bool(items.present().all())

    def _bits(self, bits: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
        end = self.offset + self.length
        unpacked = np.unpackbits(bits, count=end, bitorder="little")
        return unpacked[self.offset :].view(np.bool_)

    def _numbers(self, dtype: Any, buffer: int = 1) -> Array:
        found = self.buffers[buffer]
        if found is None:
            return np.zeros(self.length, dtype)
        numbers: Array = found.view(dtype)[self.offset : self.offset + self.length]
        return numbers

    def _items(self, wanted: npt.NDArray[np.bool_]) -> Array | Bytes | Ragged:
        """Returns all items of the list. `wanted` items may not be null."""
        items = self.children[0]
        if (wanted & ~items.present()).any():
            raise ValueError(
                f"Column {self.name!r} has nulls inside its lists, which an Example cannot hold. "
                "Drop or fill them first."
            )
        return items._column(wanted)

    def _fixed_lists(self, size: int, present: npt.NDArray[np.bool_]) -> Array | Bytes | Ragged:
        child = self.children[0]
        first, count = self.offset * size, self.length * size
        wanted = np.zeros(child.length, np.bool_)
        wanted[first : first + count] = np.repeat(present, size)
        items: Any = self._items(wanted)
        if isinstance(items, Ragged):
            return Ragged(items[first : first + count], np.arange(self.length + 1) * size)
        some = items[first : first + count]
        shape = (self.length, size, *some.shape[1:])
        return (
            Bytes(some.data, some.offsets, shape)
            if isinstance(some, Bytes)
            else some.reshape(shape)
        )

    def _list_views(self, present: npt.NDArray[np.bool_]) -> Ragged:
        begins, sizes = (
            self._numbers(_OFFSETS[self.format], buffer).astype(np.int64) for buffer in (1, 2)
        )
        sizes = np.where(present, sizes, 0)
        items = self._items(_of_rows(begins, sizes, present, self.children[0]))
        begins = np.where(present, begins, 0)
        return Ragged(take_values(items, begins, sizes), splits_of(sizes))

    def _viewed(self, present: npt.NDArray[np.bool_]) -> Bytes:
        """Returns the strings of a view type, in which each long string names its buffer."""
        views = self.buffers[1]
        if views is None:
            return Bytes(np.empty(0, np.uint8), np.zeros(self.length + 1, np.int64))
        rows = slice(self.offset, self.offset + self.length)
        parts = [views, *map(_or_empty, self.buffers[2:-1])]
        begins = np.cumsum([0, *map(len, parts)])
        fields = views.view(np.int32).reshape(-1, 4)[rows].astype(np.int64)
        sizes = np.where(present, fields[:, 0], 0)
        is_inline = sizes <= _INLINE_BYTES
        inside = (np.arange(self.offset, self.offset + self.length)) * _VIEW_BYTES + 4
        numbers = np.where(is_inline, 0, fields[:, 2])
        starts = (
            np.where(is_inline, inside, begins[1:][numbers] + fields[:, 3])
            if len(parts) > 1
            else inside
        )
        starts = np.where(sizes > 0, starts, 0)
        return Bytes(join_pieces(np.concatenate(parts), starts, sizes), splits_of(sizes))

    def _looked_up(self, present: npt.NDArray[np.bool_]) -> Array | Bytes | Ragged:
        assert self.dictionary is not None
        numbers = np.where(present, self._numbers(_NUMBERS[self.format]), 0).astype(np.int64)
        if self.dictionary.length == 0:
            return np.zeros(self.length, np.int64)
        if not self.dictionary.present()[numbers[present]].all():
            raise ValueError(f"Column {self.name!r}: its dictionary has nulls.")
        values: Any = self.dictionary.column()
        taken: Array | Bytes | Ragged = values[numbers]
        return taken


def _or_empty(buffer: npt.NDArray[np.uint8] | None) -> npt.NDArray[np.uint8]:
    return np.empty(0, np.uint8) if buffer is None else buffer


def _of_rows(
    begins: Array, sizes: Array, present: npt.NDArray[np.bool_], items: ArrowNode
) -> npt.NDArray[np.bool_]:
    """Returns a mask of the items in present rows."""
    marks = np.zeros(items.length + 1, np.int64)
    np.add.at(marks, begins[present], 1)
    np.add.at(marks, (begins + sizes)[present], -1)
    return np.cumsum(marks)[:-1] > 0
