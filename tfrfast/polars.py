"""Records as a lazy frame of Polars. Imported only on use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl
from polars.io.plugins import register_io_source

from tfrfast.features import AnyFeatures
from tfrfast.reader import Reader
from tfrfast.storage.paths import Paths
from tfrfast.tables import scanning
from tfrfast.tables.scanning import Scan

__all__ = ["scan"]


def scan(
    source: Reader | Paths,
    *,
    features: AnyFeatures | None = None,
    records: Any = None,
    record_column: bool | str = False,
    shard_column: bool | str = False,
    threads: int | None = None,
    **reader_options: Any,
) -> pl.LazyFrame:
    """Returns the records as a lazy frame of Polars.

        frame = tfrfast.polars.scan("data/train-*", features={"label": tfr.FixedLen((), "int64")})
        frame.group_by("label").len().collect()

    Columns that the query does not use are not decoded. If the query begins with `head`, `limit`,
    `slice` or `tail`, only the rows that it asks for are read. Polars moves a later `head` or
    `limit` to the beginning where it can. A filter is applied to each batch.

    The arguments are those of `tfr.scan`.
    """
    whole = scanning.scan(
        source,
        features=features,
        records=records,
        record_column=record_column,
        shard_column=shard_column,
        threads=threads,
        **reader_options,
    )
    frame: pl.LazyFrame = _ScanFrame._of(whole)
    return frame


class _ScanFrame(pl.LazyFrame):
    """A lazy frame that slices its scan itself: Polars tells a source only the end of a slice.

    A frame that Polars derives from this frame has the same class, but no scan.
    """

    _scan: Scan | None = None

    @classmethod
    def _of(cls, scan: Scan) -> _ScanFrame:
        schema = pl.DataFrame(scan.part(rows=slice(0))).schema

        def frames(
            columns: list[str] | None,
            predicate: pl.Expr | None,
            n_rows: int | None,
            batch_size: int | None,
        ) -> Iterator[pl.DataFrame]:
            for frame in _frames(scan, columns, n_rows):
                yield frame if predicate is None else frame.filter(predicate)

        made = cls._from_pyldf(register_io_source(frames, schema=schema, is_pure=True)._ldf)
        made._scan = scan
        return made

    def slice(self, offset: int, length: int | None = None) -> pl.LazyFrame:
        scan = self._scan
        # If damaged records are left out, the numbers of later rows are unknown.
        if scan is None or scan.reader._skips_damage or offset < -len(scan):
            return super().slice(offset, length)
        first = offset if offset >= 0 else len(scan) + offset
        return self._of(scan.part(rows=slice(first, None if length is None else first + length)))

    def tail(self, n: int = 5) -> pl.LazyFrame:
        if self._scan is None or self._scan.reader._skips_damage:
            return super().tail(n)
        return self.slice(max(0, len(self._scan) - n))


def _frames(scan: Scan, columns: list[str] | None, n_rows: int | None) -> Iterator[pl.DataFrame]:
    """Yields the scan's batches, up to `n_rows` rows in all."""
    left = len(scan) if n_rows is None else n_rows
    may_lose_rows = scan.reader._skips_damage
    for batch in scan.part(columns, rows=None if may_lose_rows else slice(left)):
        frame = pl.DataFrame(batch)
        yield frame.head(left)
        left -= frame.height
        if left <= 0:
            return
