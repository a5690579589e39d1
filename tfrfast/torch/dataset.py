"""A map-style Dataset, whose DataLoader gets whole batches at once."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, SupportsIndex

import numpy as np
import torch.utils.data

from tfrfast.base.arguments import Int64Array, check_transform, integers
from tfrfast.base.refused_arguments import explains_arguments
from tfrfast.columns.rows import is_number, row_numbers
from tfrfast.features import AnyFeatures, Features
from tfrfast.loading.records import RecordsByNumber
from tfrfast.order import Mixture, Plan, Shuffle
from tfrfast.reader import Reader
from tfrfast.storage.paths import Paths
from tfrfast.torch.batch import Batch, Ragged, tensors_of

__all__ = ["Dataset", "collate"]


class Dataset(torch.utils.data.Dataset[Any]):
    """Record `i` as a dict of tensors. Byte strings are bytes.

        dataset = tfrfast.torch.Dataset("data/train-*", features=["image", "label"])
        sampler = tfrfast.torch.BatchSampler(len(dataset), 256, seed=1)
        DataLoader(dataset, batch_sampler=sampler, collate_fn=tfrfast.torch.collate, num_workers=4)

    `dataset[10:20]`, a list of numbers and a mask give several records, which `collate` takes.

    Args:
      source: a Reader, anything that Reader takes, or a Mixture, whose sources' records are
        numbered end to end. Then the Dataset has no `len`, because a BatchSampler of the Mixture
        chooses the records.
      features: as in `tfrfast.Loader`. By default inferred. With None, record `i` is its bytes.
      transform: a function of a record, whose result is the item.
      reader_options: options of Reader.

    A DataLoader requests all records of a batch together, and the Dataset reads and decodes them at
    once. Workers, forked or spawned, open the same files.
    """

    @explains_arguments
    def __init__(
        self,
        source: Reader | Mixture | Paths,
        *,
        features: AnyFeatures | None = "infer",
        transform: Callable[[Any], Any] | None = None,
        **reader_options: Any,
    ) -> None:
        check_transform(transform, "a record")
        self._records = RecordsByNumber(source, features, reader_options)
        self._transform = transform
        self._is_mixture = isinstance(source, Mixture)
        self._chosen: Int64Array | None = None  # the records of a split, in order

    @property
    def reader(self) -> Reader:
        """The Reader of the records."""
        return self._records.reader

    @property
    def features(self) -> Features | None:
        """The features that are decoded."""
        return self._records.features

    def __len__(self) -> int:
        if self._is_mixture:
            raise TypeError(
                "A sampler of all records would drop the weights of the Mixture. Let the Mixture "
                "say which come: batch_sampler=tfrfast.torch.BatchSampler(mixture, 256)."
            )
        return self._count()

    def _count(self) -> int:
        return len(self.reader if self._chosen is None else self._chosen)

    def __getitem__(self, index: Any) -> Any:
        if not is_number(index):
            return self.__getitems__(row_numbers(index, self._count(), "Record").tolist())
        if self.features is None:
            item: Any = self.reader[self._number(index)]
            return item if self._transform is None else self._transform(item)
        rows = self.__getitems__([index])
        # The batch has no row if the record is damaged. The reader raises the error.
        return rows[0] if len(rows) else self.reader[self._number(index)]

    def _number(self, index: int) -> int:
        return index if self._chosen is None else int(self._numbers([index])[0])

    def _numbers(self, indices: Sequence[int]) -> Int64Array:
        numbers = integers("indices", indices)
        if self._chosen is None:
            return numbers
        return self._chosen[row_numbers(numbers, len(self._chosen), "Record")]

    def split(self, share: float, *, seed: SupportsIndex = 0) -> tuple[Dataset, Dataset]:
        """Returns a Dataset of that share of the records, and a Dataset of the others.

            train, test = dataset.split(0.9, seed=1)

        The seed alone decides which records. They keep their order.
        """
        if not isinstance(share, (int, float)) or not 0 <= share <= 1:
            raise ValueError(f"share is a number from 0 to 1, such as 0.9, not {share!r:.60}.")
        plan = Plan(Shuffle(seed), 1, num_records=len(self))
        drawn = plan.records_at(0, 0, round(len(self) * share))
        is_drawn = np.zeros(len(self), np.bool_)
        is_drawn[drawn] = True
        every = np.arange(len(self)) if self._chosen is None else self._chosen
        parts = copy.copy(self), copy.copy(self)
        parts[0]._chosen, parts[1]._chosen = every[is_drawn], every[~is_drawn]
        return parts

    def __getitems__(self, indices: Sequence[int]) -> Sequence[Any]:
        """Returns these records in this order. `collate` turns them into a batch without a copy."""
        numbers = self._numbers(indices)
        if isinstance(indices, BatchNumbers):
            read = self._records.read(numbers, indices.valid, indices.draws, indices.epoch)
        else:
            self._refuse_draws()
            read = self._records.read(numbers)
        batch = tensors_of(read)
        rows = Samples(batch) if isinstance(batch, Batch) else batch.tolist()
        return rows if self._transform is None else [*_transformed(self._transform, rows)]

    def _refuse_draws(self) -> None:
        if self._records.needs_draws:
            raise ValueError(
                "An image that is cropped or flipped at random takes its draws from the epoch and "
                "the position of its record, which only a BatchSampler of tfrfast tells: "
                "DataLoader(dataset, batch_sampler=tfrfast.torch.BatchSampler(len(dataset), 256))."
            )

    def __repr__(self) -> str:
        part = "" if self._chosen is None else f", {len(self._chosen):,} of its records"
        return f"Dataset({self.reader!r}{part})"


def _transformed(transform: Callable[[Any], Any], rows: Iterable[Any]) -> Iterator[Any]:
    # In a generator, a StopIteration of the transform is an error. A DataLoader would end the
    # epoch.
    for row in rows:
        yield transform(row)


class BatchNumbers(list[int]):
    """The record numbers of a batch, a mask of the real rows, the draws of their images, and the
    epoch.
    """

    def __init__(
        self,
        numbers: list[int],
        valid: np.ndarray[Any, Any],
        draws: np.ndarray[Any, Any],
        epoch: int,
    ) -> None:
        super().__init__(numbers)
        self.valid = valid
        self.draws = draws
        self.epoch = epoch

    def __reduce__(self) -> tuple[Any, ...]:
        return BatchNumbers, (list(self), self.valid, self.draws, self.epoch)


class Samples(Sequence[dict[str, Any]]):
    """The rows of a batch, one by one."""

    def __init__(self, batch: Batch) -> None:
        assert batch.indices is not None
        self.batch = batch
        self._count = len(batch.indices)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, row: Any) -> Any:
        if isinstance(row, slice):
            return [self[each] for each in range(*row.indices(self._count))]
        if not -self._count <= row < self._count:
            raise IndexError(f"Row {row} does not exist: there are {self._count} rows.")
        return {name: _row(column, row % self._count) for name, column in self.batch.items()}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self[row] for row in range(self._count))


def _row(column: Any, row: int) -> Any:
    if not isinstance(column, Ragged):
        return column[row]
    first, last = column.offsets[row : row + 2].tolist()
    return _rows(column.values, first, last)


def _rows(values: Any, first: int, last: int) -> Any:
    if not isinstance(values, Ragged):
        return values[first:last]
    offsets = values.offsets[first : last + 1]
    return Ragged(_rows(values.values, int(offsets[0]), int(offsets[-1])), offsets - offsets[0])


def collate(samples: Sequence[Any]) -> Any:
    """Returns the Batch of a DataLoader's items from a Dataset. For `collate_fn`.

    Items of a `transform`, or of a dataset that knows only single items, are put together by
    torch's `default_collate`, which refuses rows of different lengths.
    """
    if isinstance(samples, Samples):
        return samples.batch
    return torch.utils.data.default_collate(list(samples))
