"""Records as a table for Polars, DuckDB, pandas, PyArrow and other consumers of Arrow."""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tfrfast import _native
from tfrfast.base.arguments import Int64Array, checked_threads, integer
from tfrfast.base.refused_arguments import explains_arguments
from tfrfast.base.sizes import counted
from tfrfast.base.tables import html_table
from tfrfast.columns.rows import row_numbers
from tfrfast.errors import StaleIndexError
from tfrfast.features import AnyFeatures, Features, FixedLen, VarLen
from tfrfast.features.inference import NO_VALUES
from tfrfast.features.names import names_in
from tfrfast.loading.planned_features import is_all, planned_features, planned_sample
from tfrfast.loading.records import chosen_order, open_reader
from tfrfast.order import CountedBatching, InOrder, Mixture, Order, Plan
from tfrfast.reader import Reader
from tfrfast.storage.paths import Paths
from tfrfast.tables.columns import ScanColumns, scan_columns

__all__ = ["Scan", "scan"]

_BATCH_BYTES = 8 << 20
_RECORDS_TO_CHECK = 32


@explains_arguments
def scan(
    source: Reader | Mixture | Paths,
    *,
    features: AnyFeatures | None = None,
    columns: Sequence[str] | None = None,
    records: Any = None,
    order: Order | None = None,
    batch_size: int | None = None,
    record_column: bool | str = False,
    shard_column: bool | str = False,
    tensors: bool = False,
    text: Sequence[str] = (),
    sample: int | None = 1000,
    threads: int | None = None,
    **reader_options: Any,
) -> Scan:
    """Returns the records as a table, for every consumer of Arrow's C stream interface.

        examples = tfr.scan("data/train-*", features={"label": tfr.FixedLen((), "int64")})
        duckdb.sql("select label, count(*) from examples group by label")
        polars.DataFrame(examples), pyarrow.table(examples)

    Raises the errors of Reader, and FeatureError for features that the records do not have.

    Args:
      source: a Reader, or anything that Reader takes; `reader_options` are passed on to it. Or a
        Mixture: the table is then an epoch of the Mixture.
      features: the features to decode: a dict, as for `parse_example`; a list of names; or "infer",
        the default. A feature that has one value in each record of the sample becomes a plain
        column; a later record with more values, or of another type, is a FeatureError that names
        the record. Other features become lists. Shapes that are inferred from all records are kept.
      columns: the columns, in this order. Only these are decoded.
      records: numbers, a slice or a mask of records, in that order. By default all.
      order: reads the records of the order's epoch 0, instead of all. Takes 8 bytes a row.
      batch_size: rows of a batch. By default about 8 MiB, and at most 65,536 rows.
      record_column, shard_column: adds a column "record" with the record's number, "shard" with its
        file's path. A string gives the column another name.
      text: the features whose byte strings are UTF-8 text, which is checked. They become strings.
      sample: the number of records to infer features from; None takes all records, and reads them
        twice.
      tensors: arrays get Arrow's type for tensors of one shape, instead of lists in lists.
      threads: workers that read and decode; by default the number of processors that this process
        may use.
    """
    if isinstance(batch_size, CountedBatching):
        raise TypeError("batch_size is a number of rows here. A Loader takes a ByTokens.")
    reader = open_reader(source, reader_options)
    size = reader._records_within(_BATCH_BYTES) if batch_size is None else batch_size
    size = integer("batch_size", size, 1, 2**31 - 1)
    order = chosen_order(source, order, records)
    numbers = None if records is None else row_numbers(records, len(reader), "Record")
    if order is not None:
        plan = Plan(order, size, num_records=len(reader))
        numbers = plan.records_at(0, 0, plan.positions)
    _check_columns(columns)
    threads = checked_threads(threads)
    extras = {
        what if given is True else str(given): what
        for what, given in (("record", record_column), ("shard", shard_column))
        if given
    }
    if record_column and shard_column and len(extras) == 1:
        raise ValueError(
            f"record_column and shard_column are both {next(iter(extras))!r}. Give one of the two "
            "columns another name."
        )
    specs = _settled(reader, features, columns, extras, sample, threads)
    if columns is None:
        _check_extras(extras, specs)
    elif asked := {name: extras[name] for name in columns if name in extras}:
        _check_extras(asked, _known_features(reader, features))
    names = [*specs, *extras] if columns is None else list(columns)
    settled = scan_columns(specs, names, extras, tensors, text)
    return Scan(reader, numbers, size, specs, settled, threads)


class Scan:
    """A table that is read on demand, each time from the beginning. See `scan`.

        labels = tfr.scan("data/train-*", features=["label"])
        for batch in labels:                 # or pyarrow.table(labels), all at once
            print(pyarrow.record_batch(batch).num_rows)

    Consumers on several threads have streams of their own. A stream keeps its files open: the
    Reader may be closed during a stream, but not before its beginning. Iterating gives the batches
    one by one, each for Arrow's consumers, too. A pickle of a Scan opens the same files.
    """

    def __init__(
        self,
        reader: Reader,
        numbers: Int64Array | None,
        batch_size: int,
        features: Features,
        columns: ScanColumns,
        threads: int | None,
    ) -> None:
        self.reader = reader
        #: The specs of the decoded features.
        self.features = features
        self._numbers = numbers
        self._batch_size = batch_size
        self._plan = Plan(InOrder(indices=numbers), batch_size, num_records=len(reader))
        self._columns = columns
        self._threads = threads

    @property
    def columns(self) -> list[str]:
        """The names of the columns, in order."""
        return list(self._columns.contents)

    @property
    def batch_size(self) -> int:
        """Rows of a batch."""
        return self._batch_size

    @property
    def threads(self) -> int | None:
        """The number of workers that read and decode. None stands for the number of processors."""
        return self._threads

    def part(
        self,
        columns: Sequence[str] | None = None,
        *,
        rows: slice | None = None,
        threads: int | None = None,
    ) -> Scan:
        """Returns the same scan with only these columns and rows, and as many `threads`."""
        numbers = self._numbers
        if rows is not None:
            some = range(len(self))[rows]
            if some != range(len(self)):
                numbers = np.arange(len(self))[rows] if numbers is None else numbers[rows]
        return Scan(
            self.reader,
            numbers,
            self.batch_size,
            self.features,
            self._columns if columns is None else self._columns.only(columns),
            threads or self._threads,
        )

    def __len__(self) -> int:
        """The number of rows, including damaged records that the reader will leave out."""
        return self._plan.positions

    def __arrow_c_schema__(self) -> Any:
        """Returns the type of the rows, as a capsule for Arrow's consumers."""
        return self._columns.struct().__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Returns a new stream of all batches, as a capsule for Arrow's consumers.

        Ignores `requested_schema`, as the interface allows. Reads nothing before the first batch is
        requested.
        """
        return self._native().stream()

    def __iter__(self) -> Iterator[_native.ArrowColumn]:
        return self._batches()

    def _batches(self) -> Iterator[_native.ArrowColumn]:
        return iter(self._native())

    def _native(self) -> _native.Scan:
        threads = self._threads or _native.usable_processors()
        contents = list(self._columns.contents.values())
        schema = self._columns.schema()
        return _native.Scan(
            self.reader._core,
            self._plan._core,
            schema,
            contents,
            threads,
            threads + 2,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        settled = self._numbers, self.batch_size, self.features, self._columns, self._threads
        return _of_same_data, (self.reader, self.reader._fingerprint, *settled)

    def __repr__(self) -> str:
        return f"Scan({self.reader!r}, {len(self)} rows, columns={self.columns})"

    def _repr_html_(self) -> str:
        return html_table(
            f"Scan: {counted(len(self), 'rows')}, which are read when someone asks",
            ["column", "feature"],
            [(name, self.features.get(name, "")) for name in self.columns],
        )


def _of_same_data(reader: Reader, fingerprint: int, *settled: Any) -> Scan:
    if reader._fingerprint != fingerprint:
        raise StaleIndexError(
            f"{reader!r} opens other data than the scan that was pickled: since then, shards were "
            "changed, or this machine sees other files."
        )
    return Scan(reader, *settled)


def _check_columns(columns: Sequence[str] | None) -> None:
    if isinstance(columns, str):
        raise TypeError(f"columns is a list of names: columns=[{columns!r}].")
    names = list(columns or ())
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"columns names {twice[0]!r} twice.")


def _settled(
    reader: Reader,
    features: AnyFeatures | None,
    columns: Sequence[str] | None,
    extras: Mapping[str, str],
    sample: int | None,
    threads: int | None,
) -> Features:
    """Returns a spec for each feature among the columns."""
    wanted = None if columns is None else [name for name in columns if name not in extras]
    if isinstance(features, Mapping):
        known: Features = reader._fitted(features)
    elif wanted == [] or (len(reader) == 0 and features is None):
        known = {}
    else:
        known = _inferred(reader, features or wanted or "infer", sample, threads)
    if wanted is None:
        return known
    if missing := [name for name in wanted if name not in known]:
        raise ValueError(
            f"There is no column {missing[0]!r}. There are {', '.join(map(repr, known))}; "
            "record_column=True and shard_column=True add two more."
        )
    return {name: known[name] for name in wanted}


def _check_extras(extras: Mapping[str, str], features: Collection[str]) -> None:
    """Raises ValueError for a column of `extras` that has the name of a feature."""
    for name, what in extras.items():
        if name in features:
            raise ValueError(
                f"There is a feature {name!r} already. Give the column of the {what} another name, "
                f'as in {what}_column="_{what}".'
            )


def _known_features(reader: Reader, features: AnyFeatures | None) -> Collection[str]:
    """Returns the names of the features that were given, or those of a sample."""
    if features is not None and not isinstance(features, str):
        return features
    return names_in(planned_sample(reader, InOrder(), _RECORDS_TO_CHECK).records)


def _inferred(reader: Reader, features: Any, sample: int | None, threads: int | None) -> Features:
    if sample is not None and (sample := operator.index(sample)) < 1:
        raise ValueError(f"sample must be at least 1, or None, not {sample}.")
    compiled = planned_features(features, reader, InOrder(), sample, threads)
    assert compiled is not None
    if is_all(reader, sample):
        return compiled.specs
    return {
        name: FixedLen((), spec.dtype, NO_VALUES[spec.dtype], inferred=True)
        if isinstance(spec, FixedLen) and spec.shape == ()
        else VarLen(spec.dtype, inferred=True)
        for name, spec in compiled.specs.items()
    }
