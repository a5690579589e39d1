"""The columns of a batch by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from tfrfast._native import ArrowColumn
from tfrfast.base.refused_arguments import explains_arguments
from tfrfast.base.sizes import counted
from tfrfast.columns.arrays import Array
from tfrfast.columns.arrow import ArrowExport, arrow_of, struct_of
from tfrfast.columns.pictures import Pictures
from tfrfast.columns.ragged import Ragged
from tfrfast.columns.rows import Rows, row_numbers
from tfrfast.columns.shown import html_columns
from tfrfast.columns.sparse import Sparse
from tfrfast.columns.strings import Bytes

__all__ = ["Batch", "Column", "Crops"]

Column: TypeAlias = Array | Bytes | Pictures | Ragged | Sparse
#: Arrays with an integer for each row, by name: "top", "left" and so on.
Crops: TypeAlias = Mapping[str, npt.NDArray[np.int32]]


class Batch(dict[str, Any], ArrowExport):
    """The columns of a batch by name.

        images = batch["image"]
        real = batch[batch.valid]

    `indices` are the record numbers of the rows, and `valid` is False for rows of padding. A slice,
    a mask or a list of row numbers, as in `batch[2:5]` or `batch[batch.valid]`, takes these rows of
    every column. The rows are views if the column can make views, otherwise copies. `len(batch)`
    counts columns, and `len(batch.indices)` counts rows.

    `crops` says by feature how each `Image` was cut. `batch.crops["image"]["top"]` is an array with
    a number for each row. Beside `"top"` there are `"left"`, `"height"` and `"width"` of the
    window, `"image_height"` and `"image_width"`, and `"flipped"` and `"damaged"`, which are 1 or 0.

    In a batch of a `Packed`, packed columns have a row for each pack. `segments` counts the records
    of each row from 1 on, and is 0 where nothing is; `positions` counts the tokens of each record
    from 0 on. Both are int32; with several budgets of tokens, dicts by feature. Everything else has
    a row for each record, in order. `starts` holds the row of each record and its column, in each
    budget, and `pieces` the number of each piece of a record that was split.

    In the batches that `Steps(only=)` calls its function with, `episodes` holds the number of each
    step's episode, and `steps` the step's number in it.

    In batches of a Mixture, the record numbers of source `i` begin at `source_starts[i]`, and
    `sources` holds the number of each row's source.
    """

    @explains_arguments
    def __init__(
        self,
        columns: Mapping[str, Column],
        indices: npt.NDArray[np.int64],
        valid: npt.NDArray[np.bool_],
        source_starts: npt.NDArray[np.int64] | None = None,
        crops: Mapping[str, Crops] | None = None,
    ) -> None:
        super().__init__(columns)
        self.source_starts = np.zeros(1, np.int64) if source_starts is None else source_starts
        self.indices = indices
        self.valid = valid
        self.crops = {} if crops is None else dict(crops)
        #: The facts about packed records, which the properties below give.
        self._packed: Any = None
        # The places of the steps, for the function of `Steps(only=)`.
        self.episodes: Any = None
        self.steps: Any = None

    @property
    def segments(self) -> Any:
        """The number of each token's record in its row, from 1 on, in a batch of a `Packed`."""
        return None if self._packed is None else self._packed.segments

    @property
    def positions(self) -> Any:
        """The number of each token in its record, in a batch of a `Packed`."""
        return None if self._packed is None else self._packed.positions

    @property
    def starts(self) -> Any:
        """The row and the columns where each record begins, in a batch of a `Packed`."""
        return None if self._packed is None else self._packed.starts

    @property
    def pieces(self) -> Any:
        """The number of each record's piece, in a batch of a `Packed`."""
        return None if self._packed is None else self._packed.pieces

    def as_dict(self) -> dict[str, Any]:
        """Returns the columns of packed rows as a plain dict, with segments and positions.

        These are `ids_segment_ids` and `ids_positions` of each packed feature, or as the Packed's
        `keys` say.
        """
        return dict(self) | ({} if self._packed is None else self._packed.columns())

    @property
    def sources(self) -> npt.NDArray[np.int64]:
        """The number of each row's source in a Mixture; 0 without a Mixture."""
        if isinstance(self.indices, np.ndarray):
            if len(self.source_starts) == 1:  # the search would take longer
                return np.zeros(len(self.indices), np.int64)
            return np.searchsorted(self.source_starts, self.indices, side="right") - 1
        # Arrays of other libraries, for example JAX's, may have no values yet.
        sources: Any = (self.indices[:, None] >= self.source_starts).sum(1) - 1
        return sources

    @overload
    def __getitem__(self, key: str) -> Any: ...
    @overload
    def __getitem__(self, key: Rows) -> Batch: ...
    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            return dict.__getitem__(self, key)
        if self._packed is not None:
            raise TypeError(
                "A packed row holds several records, so packed batches have no rows to take: "
                "starts says where each record is."
            )
        rows = key if isinstance(key, slice) else row_numbers(key, len(self.indices))
        columns = {name: column[rows] for name, column in self.items()}
        crops = {
            name: {field: values[rows] for field, values in each.items()}
            for name, each in self.crops.items()
        }
        made = Batch(columns, self.indices[rows], self.valid[rows], self.source_starts, crops)
        if self.episodes is not None:
            made.episodes, made.steps = self.episodes[rows], self.steps[rows]
        return made

    def to_arrow(self) -> ArrowColumn:
        """Returns the same rows for Arrow's consumers, as in
        `pyarrow.record_batch(batch.to_arrow())`.

        Consumers take a Batch itself, too, unless they first check for a dict, as PyArrow, Polars
        and pandas do.
        """
        return self._to_arrow("")

    def _to_arrow(self, name: str) -> ArrowColumn:
        if self._packed is not None:
            raise TypeError("Packed rows are no table of records: Arrow has no place for them.")
        columns = [arrow_of(each, column) for each, column in self.items()]
        return struct_of(name, len(self.indices), columns)

    def _repr_html_(self) -> str:
        rows, what = len(self.indices), "rows" if self._packed is None else "records"
        title = f"{type(self).__name__}: {counted(rows, what)}, {counted(len(self), 'columns')}"
        return html_columns(title, self, range(rows))

    def __reduce__(self) -> tuple[Any, ...]:
        arguments = (dict(self), self.indices, self.valid, self.source_starts, self.crops)
        more = {"_packed": self._packed, "episodes": self.episodes, "steps": self.steps}
        return Batch, arguments, more
