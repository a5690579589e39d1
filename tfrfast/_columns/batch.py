"""The columns of a batch by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from tfrfast._columns.arrays import Array
from tfrfast._columns.ragged import Ragged
from tfrfast._columns.rows import Rows, row_numbers
from tfrfast._columns.sparse import Sparse
from tfrfast._columns.strings import Bytes

__all__ = ["Batch", "Column"]

Column: TypeAlias = Array | Bytes | Ragged | Sparse


class Batch(dict[str, Any]):
    """The columns of a batch by name.

        images = batch["image"]
        real = batch[batch.valid]

    `indices` are the record numbers of the rows, and `valid` is False for rows of padding. A slice,
    a mask or a list of row numbers, as in `batch[2:5]` or `batch[batch.valid]`, takes these rows of
    every column. They are views where the column can make views, and copies otherwise. `len(batch)`
    counts columns, and `len(batch.indices)` counts rows.
    """

    def __init__(
        self,
        columns: Mapping[str, Column],
        indices: npt.NDArray[np.int64],
        valid: npt.NDArray[np.bool_],
    ) -> None:
        super().__init__(columns)
        self.indices = indices
        self.valid = valid

    @overload
    def __getitem__(self, key: str) -> Any: ...
    @overload
    def __getitem__(self, key: Rows) -> Batch: ...
    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            return dict.__getitem__(self, key)
        rows = key if isinstance(key, slice) else row_numbers(key, len(self.indices))
        columns = {name: column[rows] for name, column in self.items()}
        return Batch(columns, self.indices[rows], self.valid[rows])

    def __reduce__(self) -> tuple[Any, ...]:
        return Batch, (dict(self), self.indices, self.valid)
