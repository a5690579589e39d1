"""Records by number, as a data source of Grain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np

from tfrfast.base.arguments import Int64Array, integer, integers, no_such
from tfrfast.columns import Batch, Sparse
from tfrfast.columns.rows import row_numbers
from tfrfast.features import AnyFeatures, Features
from tfrfast.loading.records import Draws, RecordsByNumber, chosen_order
from tfrfast.order import Mixture, Order, Plan
from tfrfast.reader import Reader
from tfrfast.storage.paths import Paths

__all__ = ["Source"]


class Source:
    """A RandomAccessDataSource over TFRecord files, for `MapDataset.source` and `DataLoader`.

        source = tfrfast.grain.Source("data/train-*", features=["image", "label"])
        dataset = grain.MapDataset.source(source).shuffle(seed=1).batch(256)

    Args:
      source: a Reader, anything that Reader takes, or a Mixture, which is an order, too.
      order: item `i` is the record at position `i` of this order, not record `i`. Then do not
        shuffle the source again.
      epochs: the number of epochs of the order, one after the other.
      features: as in `tfrfast.Loader`. With None, record `i` is its bytes; otherwise a dict of the
        values of each feature.
      reader_options: options of Reader.

    With `on_corruption="skip"`, a damaged record is None, which a MapDataset leaves out. Any number
    of threads may read. A pickled source opens the same files. Its repr, which Grain's checkpoints
    compare, does not depend on the folder of the files.
    """

    def __init__(
        self,
        source: Reader | Mixture | Paths,
        *,
        features: AnyFeatures | None = None,
        order: Order | None = None,
        epochs: SupportsIndex = 1,
        **reader_options: Any,
    ) -> None:
        self._records = RecordsByNumber(source, features, reader_options)
        chosen = chosen_order(source, order, None)
        self._epochs = integer("epochs", epochs, 1, 2**31 - 1)
        if chosen is None and self._epochs > 1:
            raise TypeError("epochs=... needs an order: give order=, or repeat the dataset.")
        if chosen is None and self._records.needs_draws:
            raise ValueError(
                "An image that is cropped or flipped at random takes its draws from an order: give "
                "order=tfr.Shuffle(seed), and do not shuffle the source again."
            )
        self._plan = None if chosen is None else Plan(chosen, 1, num_records=len(self.reader))

    @property
    def reader(self) -> Reader:
        """The Reader of the records."""
        return self._records.reader

    @property
    def features(self) -> Features | None:
        """The features that are decoded."""
        return self._records.features

    def __len__(self) -> int:
        return len(self.reader) if self._plan is None else self._plan.positions * self._epochs

    def __getitem__(self, index: SupportsIndex) -> Any:
        return self._getitems([index.__index__()])[0]

    def _getitems(self, indices: Sequence[int]) -> Sequence[Any]:
        """Returns several records, which are read and decoded together."""
        numbers, draws, epochs = self._places(integers("indices", indices))
        if len(epochs) > 1:
            return [self[index] for index in indices]
        batch = self._records.read(numbers, draws=draws, epoch=epochs.pop() if epochs else 0)
        rows = _rows(batch) if isinstance(batch, Batch) else batch.tolist()
        if len(rows) == len(numbers):
            return rows
        # The reader has left out damaged records.
        kept = iter(zip(batch.indices.tolist(), rows, strict=True))
        number, row = next(kept, (None, None))
        items: list[Any] = []
        for wanted in numbers.tolist():
            items.append(row if wanted == number else None)
            if wanted == number:
                number, row = next(kept, (None, None))
        return items

    def _places(self, items: Int64Array) -> tuple[Int64Array, Draws | None, set[int]]:
        """Returns the record of each item, a random number for the item's images, and the epochs
        of the items.
        """
        plan, count = self._plan, len(self)
        if plan is None:
            return row_numbers(items, count, "Record"), None, {0}
        numbers = np.empty(len(items), np.int64)
        draws = np.empty(len(items), np.uint64) if self._records.needs_draws else None
        epochs = set()
        for i, item in enumerate(items.tolist()):
            if not -count <= item < count:
                raise no_such("Item", item, count)
            epoch, position = divmod(item % count, plan.positions)
            epochs.add(epoch)
            numbers[i] = plan.indices(epoch, position)[0]
            if draws is not None:
                draws[i] = plan._draws(epoch, position)[0]
        return numbers, draws, epochs

    def __repr__(self) -> str:
        data = f"{len(self)} records, data={self.reader._fingerprint:016x}"
        order = "" if self._plan is None else f", {self._plan.order_text}"
        return f"Source({data}{order}, features={self.features!r})"


def _rows(batch: Batch) -> list[Any]:
    if not batch:
        return [{} for _ in batch.indices]
    # Column by column, which is faster than row by row.
    columns = [
        [column[row] for row in range(len(column))] if isinstance(column, Sparse) else list(column)
        for column in batch.values()
    ]
    return [dict(zip(batch, values, strict=True)) for values in zip(*columns, strict=True)]
