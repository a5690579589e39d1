"""Pictures of any size."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any, overload

import numpy as np

from tfrfast import _native
from tfrfast.base.arguments import no_such
from tfrfast.base.refused_arguments import explains_arguments
from tfrfast.columns.arrays import Array, splits_of
from tfrfast.columns.arrow import ArrowExport
from tfrfast.columns.ragged import Ragged
from tfrfast.columns.rows import Rows, is_number, row_numbers

__all__ = ["Pictures"]


class Pictures(ArrowExport):
    """Pictures of any size, end to end in one array: the column of an `Image` without a size.

    Picture `i` is `values[row_splits[i]:row_splits[i + 1]]` in the shape `shapes[i]`: height, width
    and channels. If rows are windows of several pictures, `shapes[i]` has a line for each picture
    of row `i`, and the row is a list of pictures.

    >>> values = np.arange(18, dtype=np.uint8)
    >>> shapes = np.array([[1, 2, 3], [2, 2, 3]])
    >>> column = tfrfast.columns.Pictures(values, np.array([0, 6, 18]), shapes)
    >>> column[0].tolist(), column[1].shape
    ([[[0, 1, 2], [3, 4, 5]]], (2, 2, 3))
    """

    __slots__ = ("row_splits", "shapes", "values")

    @explains_arguments
    def __init__(self, values: Array, row_splits: Array, shapes: Array) -> None:
        self.values = values
        self.row_splits = row_splits
        self.shapes = shapes

    def __len__(self) -> int:
        return len(self.shapes)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the pixels."""
        return self.values.dtype

    @overload
    def __getitem__(self, index: Rows) -> Pictures: ...
    @overload
    def __getitem__(self, index: Any) -> Any: ...
    def __getitem__(self, index: Any) -> Any:
        """Returns the picture or the pictures of a row; or, for a slice, a mask or a list of row
        numbers, these rows.

        One picture and a slice without a step are views. Other pictures are copied.
        """
        if is_number(index):
            number = operator.index(index)
            if not -len(self) <= number < len(self):
                raise no_such("Row", number, len(self))
            shape = self.shapes[number].tolist()
            if self._frames is None:
                return self._rows()[number].reshape(shape)
            first, pictures = number % len(self) * self._frames, self._rows()
            return [pictures[first + frame].reshape(each) for frame, each in enumerate(shape)]
        rows = index if isinstance(index, slice) else row_numbers(index, len(self))
        taken = self._rows()[rows if self._frames is None else self._pictures_of(rows)]
        return Pictures(np.asarray(taken.values), taken.row_splits, self.shapes[rows])

    @property
    def _frames(self) -> int | None:
        """The number of pictures in a row that is a window."""
        return self.shapes.shape[1] if self.shapes.ndim == 3 else None

    def _pictures_of(self, rows: Any) -> Array:
        numbers = np.arange(len(self) * self.shapes.shape[1]).reshape(self.shapes.shape[:2])
        chosen: Array = numbers[rows].reshape(-1)
        return chosen

    def _rows(self) -> Ragged:
        return Ragged(self.values, self.row_splits)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def tolist(self) -> list[Any]:
        """Nested lists."""
        pictures: list[Any] = [
            [each.tolist() for each in row] if self._frames else row.tolist() for row in self
        ]
        return pictures

    def to_ragged(self) -> Ragged:
        """Returns the same pictures as rows of rows of pixels, without a copy of the pixels."""
        heights, widths, channels = self.shapes.reshape(-1, 3).T
        depth = int(channels[0]) if len(channels) else 1
        first, last = int(self.row_splits[0]), int(self.row_splits[-1])
        pixels = self.values[first:last].reshape(-1, depth)
        lines = Ragged(pixels, splits_of(np.repeat(widths, heights)))
        pictures = Ragged(lines, splits_of(heights))
        if self._frames is None:
            return pictures
        return Ragged(pictures, splits_of(np.full(len(self), self._frames)))

    def _to_arrow(self, name: str) -> _native.ArrowColumn:
        return self.to_ragged()._to_arrow(name)

    def __repr__(self) -> str:
        return f"Pictures(rows={len(self)}, dtype={self.dtype})"
