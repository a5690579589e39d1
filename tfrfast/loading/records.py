"""Records by number, decoded into columns, for adapters that choose the numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, SupportsIndex, TypeAlias

import numpy as np
import numpy.typing as npt

from tfrfast import _native
from tfrfast.base.arguments import Int64Array
from tfrfast.columns.batch import Batch
from tfrfast.example.parsing import parse_rows
from tfrfast.features import AnyFeatures, Features
from tfrfast.features.compiling import compile_features
from tfrfast.loading.packing import packed_features
from tfrfast.loading.planned_features import planned_features
from tfrfast.order import InOrder, Mixture, Order, Packed, Plan, Shuffle
from tfrfast.reader import Reader
from tfrfast.storage.paths import Paths

__all__ = [
    "Counted",
    "Draws",
    "RecordsByNumber",
    "chosen_order",
    "open_reader",
    "order_of",
    "read_step",
]

#: A random number for the images of each row.
Draws: TypeAlias = npt.NDArray[np.uint64]

#: Is told the number of records that were read, without padding, and their bytes.
Counted: TypeAlias = Callable[[tuple[int, int]], None]


def open_reader(source: Reader | Mixture | Paths, options: dict[str, Any]) -> Reader:
    if isinstance(source, Mixture):
        source = source.reader
    if not isinstance(source, Reader):
        return Reader(source, **options)
    if options:
        raise TypeError(
            f"{', '.join(options)}: options of a Reader, which `source` already is. "
            "Give them to that Reader."
        )
    return source


def order_of(
    source: object, order: Order | None, shuffle: bool | None, seed: SupportsIndex | None
) -> Order:
    """Returns the order of the source's records: `order`, or an order made of `shuffle` and `seed`.

    The default is a Shuffle with seed 0, and for a Mixture the Mixture.
    """
    if isinstance(source, Mixture) or order is not None:
        whose = "a Mixture" if isinstance(source, Mixture) else "order"
        if shuffle is not None or seed is not None:
            raise TypeError(f"{whose} says how to shuffle: leave shuffle and seed out.")
        if isinstance(source, Mixture):
            if order is not None:
                raise TypeError("a Mixture is an order: leave order out.")
            return source
        if isinstance(order, Mixture):
            raise TypeError("Give the Mixture in place of the files: it knows its readers.")
        assert order is not None
        return order
    if not isinstance(shuffle, bool | np.bool_ | None):
        raise TypeError(
            f"shuffle must be True or False, not {shuffle!r}: there is no buffer whose size could "
            "be given. Another order goes to order=, such as order=tfr.BlockShuffle(...)."
        )
    if shuffle is None or shuffle:
        return Shuffle(0 if seed is None else seed)
    return InOrder()


def chosen_order(source: object, order: Order | None, records: object) -> Order | None:
    """Returns a table's order. None is the order of the files, or of the numbers in `records`."""
    if not isinstance(source, Mixture) and order is None:
        return None
    if records is not None:
        raise TypeError("an order chooses its own records: give it indices instead of records.")
    return order_of(source, order, None, None)


class RecordsByNumber:
    """Reads and decodes records. Pickles as the reader's arguments and the features."""

    def __init__(
        self,
        source: Reader | Mixture | Paths,
        features: AnyFeatures | None,
        options: dict[str, Any],
    ) -> None:
        self.reader = open_reader(source, options)
        self._count = len(self.reader)
        # Features are settled here, once, so that every batch and every process has the same
        # columns.
        order = source if isinstance(source, Mixture) else InOrder()
        compiled = planned_features(features, self.reader, order)
        self.features: Features | None = None if compiled is None else compiled.specs
        #: Whether an image is cropped or flipped at random.
        self.needs_draws = compiled is not None and compiled.needs_draws()

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        if len(self.reader) != self._count:  # which samplers and plans do not know
            raise ValueError(
                f"The set had {self._count:,} records when this object was pickled, and has "
                f"{len(self.reader):,}: shards were rewritten. Make the object again."
            )

    def read(
        self,
        numbers: Int64Array,
        valid: npt.NDArray[np.bool_] | None = None,
        draws: Draws | None = None,
        epoch: int = 0,
    ) -> _native.RecordBatch | Batch:
        """Returns the records with these numbers; a RecordBatch if nothing is decoded.

        If the reader leaves out damaged records, they are missing.
        """
        return _read_rows(self.reader, self.features, numbers, valid, draws, epoch)


def _read_rows(
    reader: Reader,
    features: Features | None,
    numbers: Int64Array,
    valid: npt.NDArray[np.bool_] | None = None,
    draws: Draws | None = None,
    epoch: int = 0,
    counted: Counted | None = None,
) -> _native.RecordBatch | Batch:
    """Returns the batch that a Loader of these features delivers for the rows of `Plan.rows`."""
    records = reader._core.read(numbers, epoch)
    if draws is not None and len(records) < len(numbers):
        draws = draws[np.isin(numbers, records.indices)]
    if valid is not None and not valid.all():
        # Padding follows the real rows, of which some may have been left out.
        real = len(reader._core.read(numbers[valid], epoch))
        valid = np.arange(len(records)) < real
        parts = records.data, records.offsets, records.indices, valid, records.source_starts
        records = _native.RecordBatch(*parts)
    if counted is not None:
        counted((len(records) if valid is None else int(valid.sum()), records.data.nbytes))
    return records if features is None else parse_rows(records, features, draws)


def read_step(
    reader: Reader,
    features: Features | None,
    plan: Plan,
    epoch: int,
    step: int,
    counted: Counted | None = None,
) -> _native.RecordBatch | Batch:
    """Returns the batch that a Loader delivers at this step of the plan. Of a Packed, no bytes are
    counted.
    """
    if isinstance(plan.batching, Packed):
        assert features is not None
        compiled = packed_features(compile_features(features), plan.batching)
        delivered = _native.load_packed(reader._core, plan._core, epoch, step, compiled.schema)
        columns, indices, valid = delivered
        if counted is not None:
            counted((len(indices), 0))
        return compiled.batch(columns, indices, valid, reader._source_starts)
    rows, draws = plan.rows(epoch, step), plan._draws(epoch, step)
    return _read_rows(reader, features, *rows, draws, epoch, counted)
